// A coroutine, which the compiler splits into functions of its own for what comes after a stop.
#include <coroutine>
#include <cstdio>
#include <exception>

struct Numbers {
  struct promise_type {
    int value = 0;
    Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int number) {
      value = number;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

__attribute__((noinline)) Numbers collatz(int number) {
  while (number > 1) {
    if (number % 2)
      number = 3 * number + 1;
    else
      number /= 2;
    co_yield number;
  }
}

int main(int count, char **) {
  long sum = 0;
  for (int number = 1; number < 400 * count; number++) {
    Numbers numbers = collatz(number);
    for (numbers.handle.resume(); !numbers.handle.done(); numbers.handle.resume())
      sum += numbers.handle.promise().value;
    numbers.handle.destroy();
  }
  std::printf("%ld\n", sum);
}
