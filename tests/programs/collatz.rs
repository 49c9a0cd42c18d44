//! The longest Collatz sequence below a limit, remembering what was seen.

use std::collections::hash_map::DefaultHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Keyed with zeros, so that every run takes the same branches.
type Seen = HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>;

fn steps(n: u64, seen: &mut Seen) -> u32 {
    if n == 1 {
        return 0;
    }
    if let Some(&known) = seen.get(&n) {
        return known;
    }
    let next = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
    let count = 1 + steps(next, seen);
    if n < 1_000_000 {
        seen.insert(n, count);
    }
    count
}

fn main() {
    let mut seen = Seen::default();
    let longest = (1..30_000).max_by_key(|&n| steps(n, &mut seen)).unwrap();
    println!("{longest}: {} steps", steps(longest, &mut seen));
}
