// The shapes of control flow that profilers find hard in C++: virtual calls with a changing mix of
// classes, templates that inline many frames deep, std::sort with an inlined comparison, and
// exceptions that unwind through several frames.
//
//   shapes [ROUNDS]     prints a checksum; the work grows linearly with ROUNDS (default 500)

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

class Random {
public:
    explicit Random(uint32_t seed) : state_(seed) {}
    uint32_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_;
    }

private:
    uint32_t state_;
};

class Shape {
public:
    virtual ~Shape() = default;
    virtual uint32_t area() const = 0;
    virtual uint32_t edges() const { return 4; }
};

class Square : public Shape {
public:
    explicit Square(uint32_t side) : side_(side) {}
    uint32_t area() const override { return side_ * side_; }

protected:
    uint32_t side_;
};

class Rectangle final : public Square {
public:
    Rectangle(uint32_t side, uint32_t other) : Square(side), other_(other) {}
    uint32_t area() const override { return side_ * other_; }

private:
    uint32_t other_;
};

class Staircase final : public Shape {
public:
    explicit Staircase(uint32_t steps) : steps_(steps) {}
    uint32_t area() const override {
        uint32_t sum = 0;
        for (uint32_t i = 1; i <= steps_ % 24; i++)
            sum += i * (i & 3);
        return sum;
    }
    uint32_t edges() const override { return 2 * (steps_ % 24) + 2; }

private:
    uint32_t steps_;
};

class Triangle final : public Shape {
public:
    Triangle(uint32_t base, uint32_t height) : base_(base), height_(height) {}
    uint32_t area() const override { return base_ * height_ / 2; }
    uint32_t edges() const override { return 3; }

private:
    uint32_t base_, height_;
};

std::unique_ptr<Shape> make_shape(Random &random) {
    uint32_t a = random.next() % 1000, b = random.next() % 1000;
    switch (random.next() % 8) {
    case 0: case 1: case 2: return std::make_unique<Square>(a);
    case 3: case 4: return std::make_unique<Rectangle>(a, b);
    case 5: return std::make_unique<Staircase>(a);
    default: return std::make_unique<Triangle>(a, b);
    }
}

// Eight levels of inlining, each with a branch of its own that survives.
template <unsigned Level> struct Mixer {
    static uint32_t mix(uint32_t x) {
        if (x & (1u << Level))
            x = x * 2654435761u + Level;
        else
            x ^= x >> (Level + 1);
        return Mixer<Level - 1>::mix(x);
    }
};

template <> struct Mixer<0> {
    static uint32_t mix(uint32_t x) { return x; }
};

template <typename Range, typename Function>
uint32_t fold(const Range &range, uint32_t start, Function function) {
    for (const auto &item : range)
        start = function(start, item);
    return start;
}

struct Item {
    uint32_t key, weight;
};

uint32_t sort_items(std::vector<Item> &items) {
    std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) {
        if (a.key != b.key)
            return a.key < b.key;
        return a.weight > b.weight;
    });
    return fold(items, 0, [](uint32_t sum, const Item &item) {
        return Mixer<8>::mix(sum ^ item.key) + item.weight;
    });
}

__attribute__((noinline)) uint32_t checked_digit(uint32_t value) {
    if (value % 97 == 13)
        throw std::out_of_range("a digit that nobody likes");
    if (value % 89 == 7)
        throw static_cast<int>(value % 1000);
    return value % 10;
}

__attribute__((noinline)) uint32_t sum_digits(uint32_t value, int depth) {
    std::unique_ptr<uint32_t> held(new uint32_t(value));  // must be freed when it unwinds
    uint32_t digit = checked_digit(*held);
    return depth == 0 ? digit : digit + sum_digits(value / 10 * 7 + 1, depth - 1);
}

uint32_t sum_or_catch(uint32_t value) {
    try {
        return sum_digits(value, 5);
    } catch (const std::out_of_range &) {
        return 1;
    } catch (int code) {
        return static_cast<uint32_t>(code);
    }
}

uint32_t total_area(const std::vector<std::unique_ptr<Shape>> &shapes) {
    return fold(shapes, 0, [](uint32_t sum, const std::unique_ptr<Shape> &shape) {
        return sum * 31 + shape->area() + shape->edges();
    });
}

}  // namespace

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 500;
    uint32_t checksum = 1;
    for (int round = 0; round < rounds; round++) {
        Random random(static_cast<uint32_t>(round) * 77 + 5);
        std::vector<std::unique_ptr<Shape>> shapes;
        std::vector<Item> items;
        for (int i = 0; i < 600; i++)
            shapes.push_back(make_shape(random));
        for (int i = 0; i < 1500; i++)
            items.push_back({random.next() % 500, random.next()});
        for (int repeat = 0; repeat < 12; repeat++)
            checksum = checksum * 17 + total_area(shapes);
        checksum ^= sort_items(items);
        for (int i = 0; i < 150; i++)
            checksum += sum_or_catch(random.next() % 100000);
    }
    std::printf("checksum %08x\n", checksum);
    return 0;
}
