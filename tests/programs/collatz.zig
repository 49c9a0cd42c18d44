//! The longest Collatz sequence below a limit.

const std = @import("std");

fn steps(first: u64) u64 {
    var n = first;
    var count: u64 = 0;
    while (n != 1) : (count += 1) {
        n = if (n % 2 == 0) n / 2 else 3 * n + 1;
    }
    return count;
}

pub fn main() void {
    var longest: u64 = 1;
    var i: u64 = 1;
    while (i < 10_000) : (i += 1) {
        if (steps(i) > steps(longest)) longest = i;
    }
    std.debug.print("{d}: {d} steps\n", .{ longest, steps(longest) });
}
