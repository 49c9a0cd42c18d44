// Encrypts, signs and digests messages, and undoes what can be undone; built with libsodium, which
// gets its chance from a seed.
// Arguments: a seed, how many messages, bytes of one at most, and letters of what is done to each:
// b for boxes from one to another, s for signatures, a for secrets with text beside them, e for
// streams in parts, d for digests, m for codes of who sent it, g for points of a group, p for
// passwords and o for old ways to encrypt.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sodium.h"

enum { MOST = 1 << 20 };

static unsigned state, failed;
static unsigned char in[MOST], out[MOST + 4096], back[MOST + 4096];
static unsigned long long sum;

static uint32_t chance(void) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) * 2654435761u;
}

static void fill(void *to, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = (unsigned char)(chance() >> 16);
}

static const char *name(void) { return "seeded"; }

static void add(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i += 5)
        sum = sum * 31 + bytes[i];
}

static void check(int result, size_t size) {
    failed += result != 0 || memcmp(in, back, size) != 0;
    add(out, size);
}

static void put_into_box(size_t size) {
    unsigned char ours[32], our_secret[32], theirs[32], their_secret[32], nonce[24];
    crypto_box_keypair(ours, our_secret);
    crypto_box_keypair(theirs, their_secret);
    fill(nonce, sizeof nonce);
    crypto_box_easy(out, in, size, nonce, theirs, our_secret);
    check(crypto_box_open_easy(back, out, size + crypto_box_MACBYTES, nonce, ours, their_secret),
          size);
}

static void put_signature(size_t size) {
    unsigned char ours[32], our_secret[64];
    unsigned long long length;
    crypto_sign_keypair(ours, our_secret);
    crypto_sign(out, &length, in, size, our_secret);
    check(crypto_sign_open(back, &length, out, length, ours), size);
}

static void encrypt_beside_text(size_t size) {
    unsigned char key[32], nonce[24];
    unsigned long long length;
    fill(key, sizeof key);
    fill(nonce, sizeof nonce);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out, &length, in, size, in, size / 3, NULL, nonce,
                                               key);
    check(crypto_aead_xchacha20poly1305_ietf_decrypt(back, &length, NULL, out, length, in, size / 3,
                                                     nonce, key),
          size);
}

static void encrypt_parts(size_t size) {
    crypto_secretstream_xchacha20poly1305_state to, from;
    unsigned char key[32], header[crypto_secretstream_xchacha20poly1305_HEADERBYTES], tag;
    unsigned long long length;
    crypto_secretstream_xchacha20poly1305_keygen(key);
    crypto_secretstream_xchacha20poly1305_init_push(&to, header, key);
    crypto_secretstream_xchacha20poly1305_init_pull(&from, header, key);
    int result = 0;
    for (size_t at = 0; at < size; at += 400) {
        size_t part = size - at < 400 ? size - at : 400;
        crypto_secretstream_xchacha20poly1305_push(&to, out, &length, in + at, part, NULL, 0,
                                                   (unsigned char)(at % 3 ? 0 : 1));
        result |= crypto_secretstream_xchacha20poly1305_pull(&from, back + at, NULL, &tag, out,
                                                             length, NULL, 0);
    }
    check(result, size);
}

static void digest(size_t size) {
    crypto_hash_sha256(out, in, size);
    crypto_hash_sha512(out + 32, in, size);
    crypto_generichash(out + 96, 64, in, size, in, size < 64 ? size : 64);
    add(out, 160);
}

static void authenticate(size_t size) {
    unsigned char key[32];
    fill(key, sizeof key);
    crypto_auth(out, in, size, key);
    crypto_onetimeauth(out + 32, in, size, key);
    crypto_shorthash(out + 48, in, size, key);
    failed += crypto_auth_verify(out, in, size, key) != 0;
    add(out, 56);
}

static void multiply_points(size_t size) {
    unsigned char point[32], scalar[32], wide[64];
    for (size_t done = 0; done <= size / 512; done++) {
        fill(wide, sizeof wide);
        crypto_core_ristretto255_from_hash(point, wide);
        crypto_core_ristretto255_scalar_random(scalar);
        failed += crypto_scalarmult_ristretto255(out, scalar, point) != 0;
        crypto_core_ristretto255_add(out + 32, out, point);
        add(out, 64);
    }
}

static void digest_password(size_t size) {
    unsigned char salt[32];
    fill(salt, sizeof salt);
    failed += crypto_pwhash(out, 40, (char *)in, size < 60 ? size : 60, salt, 2, 1 << 20,
                            crypto_pwhash_ALG_ARGON2ID13) != 0;
    add(out, 40);
}

static void encrypt_as_before(size_t size) {
    unsigned char key[32], nonce[24];
    fill(key, sizeof key);
    fill(nonce, sizeof nonce);
    crypto_stream_salsa20_xor(out, in, size, nonce, key);
    crypto_stream_chacha20_xor(out, out, size, nonce, key);
    crypto_stream_chacha20_xor(back, out, size, nonce, key);
    check(crypto_stream_salsa20_xor(back, back, size, nonce, key), size);
}

int main(int argc, char **argv) {
    if (argc != 5 || atoi(argv[3]) < 1 || atoi(argv[3]) > MOST)
        return 2;
    randombytes_implementation seeded = {name, chance, NULL, NULL, fill, NULL};
    state = (unsigned)atoi(argv[1]);
    randombytes_set_implementation(&seeded);
    if (sodium_init() < 0)
        return 2;
    for (int i = 0; i < atoi(argv[2]); i++) {
        size_t size = 1 + chance() % (unsigned)atoi(argv[3]);
        fill(in, size);
        for (const char *what = argv[4]; *what; what++)
            switch (*what) {
            case 'b': put_into_box(size); break;
            case 's': put_signature(size); break;
            case 'a': encrypt_beside_text(size); break;
            case 'e': encrypt_parts(size); break;
            case 'd': digest(size); break;
            case 'm': authenticate(size); break;
            case 'g': multiply_points(size); break;
            case 'p': digest_password(size); break;
            default: encrypt_as_before(size);
            }
    }
    printf("%u failed, %016llx\n", failed, sum);
}
