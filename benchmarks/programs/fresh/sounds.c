// Writes sounds as FLAC, reads them again and compares; built with libFLAC.
// Arguments: the level of compression, how many samples a second, bits of a sample, and sounds
// (the number of channels in a byte, then samples of 16 bits).

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "FLAC/stream_decoder.h"
#include "FLAC/stream_encoder.h"

typedef struct {
    FLAC__byte *bytes;
    size_t size, at;
    FLAC__int32 *samples;
    unsigned channels, length, heard, wrong;
} Sound;

static int load(const char *name, unsigned bits, Sound *out) {
    memset(out, 0, sizeof *out);
    FILE *file = fopen(name, "rb");
    if (!file || (out->channels = (unsigned)getc(file)) > 8)
        return 0;
    size_t room = 1 << 22;
    short *values = malloc(room * sizeof *values);
    size_t found = fread(values, sizeof *values, room, file);
    out->length = (unsigned)(found / out->channels);
    out->samples = malloc(found * sizeof *out->samples);
    for (size_t i = 0; i < found; i++)
        out->samples[i] = bits > 16 ? values[i] * (1 << (bits - 16)) + (int)(i * i % 251)
                                    : values[i] >> (16 - bits);
    free(values);
    out->bytes = malloc(found * 8);
    return fclose(file) == 0;
}

static FLAC__StreamEncoderWriteStatus wrote(const FLAC__StreamEncoder *encoder,
                                            const FLAC__byte *bytes, size_t size,
                                            unsigned samples, unsigned frame, void *told) {
    Sound *sound = told;
    memcpy(sound->bytes + sound->size, bytes, size);
    sound->size += size;
    return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
}

static FLAC__StreamDecoderReadStatus wants(const FLAC__StreamDecoder *decoder, FLAC__byte *bytes,
                                           size_t *size, void *told) {
    Sound *sound = told;
    size_t rest = sound->size - sound->at;
    *size = *size < rest ? *size : rest;
    memcpy(bytes, sound->bytes + sound->at, *size);
    sound->at += *size;
    return *size ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE
                 : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

static FLAC__StreamDecoderWriteStatus heard(const FLAC__StreamDecoder *decoder,
                                            const FLAC__Frame *frame,
                                            const FLAC__int32 *const channels[], void *told) {
    Sound *sound = told;
    for (unsigned i = 0; i < frame->header.blocksize; i++, sound->heard++)
        for (unsigned c = 0; c < sound->channels; c++)
            sound->wrong += channels[c][i] != sound->samples[sound->heard * sound->channels + c];
    return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

static void failed(const FLAC__StreamDecoder *decoder, FLAC__StreamDecoderErrorStatus status,
                   void *told) {
    ((Sound *)told)->wrong++;
}

static int encode(Sound *sound, unsigned level, unsigned rate, unsigned bits) {
    FLAC__StreamEncoder *encoder = FLAC__stream_encoder_new();
    FLAC__stream_encoder_set_channels(encoder, sound->channels);
    FLAC__stream_encoder_set_bits_per_sample(encoder, bits);
    FLAC__stream_encoder_set_sample_rate(encoder, rate);
    FLAC__stream_encoder_set_compression_level(encoder, level);
    FLAC__stream_encoder_init_stream(encoder, wrote, NULL, NULL, NULL, sound);
    int is_whole =
        FLAC__stream_encoder_process_interleaved(encoder, sound->samples, sound->length) &&
        FLAC__stream_encoder_finish(encoder);
    FLAC__stream_encoder_delete(encoder);
    return is_whole;
}

static int decode(Sound *sound) {
    FLAC__StreamDecoder *decoder = FLAC__stream_decoder_new();
    FLAC__stream_decoder_init_stream(decoder, wants, NULL, NULL, NULL, NULL, heard, NULL, failed,
                                     sound);
    int is_whole = FLAC__stream_decoder_process_until_end_of_stream(decoder);
    FLAC__stream_decoder_delete(decoder);
    return is_whole;
}

int main(int argc, char **argv) {
    for (int i = 4; i < argc; i++) {
        Sound sound;
        if (!load(argv[i], (unsigned)atoi(argv[3]), &sound) ||
            !encode(&sound, (unsigned)atoi(argv[1]), (unsigned)atoi(argv[2]),
                    (unsigned)atoi(argv[3])) ||
            !decode(&sound))
            return 2;
        printf("%s: %zu bytes, %u samples, %u wrong\n", argv[i], sound.size, sound.heard,
               sound.wrong);
        free(sound.bytes);
        free(sound.samples);
    }
}
