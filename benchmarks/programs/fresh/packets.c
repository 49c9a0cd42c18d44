// Puts packets of streams into pages, turned about, and takes them out again; packets are fields of
// few bits. Built with libogg.
// Arguments: a seed, how many packets, how many streams, bytes of a packet at most, the most bits
// of a field, and of how many pages one is lost.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ogg/ogg.h"

enum { STREAMS = 16 };

static unsigned state;

static unsigned chance(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

typedef struct {
    ogg_sync_state sync;
    ogg_stream_state streams[STREAMS];
    unsigned packets, sum, lost;
    int most, apart;
} Reader;

static void take(Reader *to, ogg_packet *packet) {
    oggpack_buffer fields;
    oggpack_readinit(&fields, packet->packet, (int)packet->bytes);
    while (oggpack_bytes(&fields) + 8 < packet->bytes) {
        long bits = 1 + oggpack_read(&fields, 5) % to->most;
        to->sum = to->sum * 31 + (unsigned)oggpack_look(&fields, (int)bits);
        oggpack_adv(&fields, (int)bits);
    }
    to->packets++;
}

static void drain(Reader *to) {
    ogg_page page;
    ogg_packet packet;
    for (int found; (found = ogg_sync_pageout(&to->sync, &page)) != 0;) {
        if (found < 0 || ogg_stream_pagein(&to->streams[ogg_page_serialno(&page)], &page) != 0) {
            to->lost++;
            continue;
        }
        ogg_stream_state *stream = &to->streams[ogg_page_serialno(&page)];
        for (int got; (got = ogg_stream_packetout(stream, &packet)) != 0;)
            if (got > 0)
                take(to, &packet);
            else
                to->lost++;
    }
}

static void send(Reader *to, const ogg_page *page) {
    char *room = ogg_sync_buffer(&to->sync, page->header_len + page->body_len);
    memcpy(room, page->header, (size_t)page->header_len);
    memcpy(room + page->header_len, page->body, (size_t)page->body_len);
    if (chance((unsigned)to->apart) == 0)
        room[chance((unsigned)page->header_len)] ^= 1;
    ogg_sync_wrote(&to->sync, page->header_len + page->body_len);
    drain(to);
}

static void fill(oggpack_buffer *fields, unsigned bytes, int most) {
    oggpack_reset(fields);
    while ((unsigned)oggpack_bytes(fields) < bytes) {
        unsigned bits = chance(32);
        oggpack_write(fields, bits, 5);
        oggpack_write(fields, chance(1u << 24), 1 + (int)bits % most);
    }
}

int main(int argc, char **argv) {
    if (argc < 7)
        return 2;
    state = (unsigned)atoi(argv[1]);
    int number = atoi(argv[2]), streams = atoi(argv[3]);
    Reader to = {.most = atoi(argv[5]), .apart = atoi(argv[6])};
    ogg_stream_state from[STREAMS];
    ogg_sync_init(&to.sync);
    for (int i = 0; i < streams; i++) {
        ogg_stream_init(&from[i], i);
        ogg_stream_init(&to.streams[i], i);
    }
    oggpack_buffer fields;
    oggpack_writeinit(&fields);
    for (int i = 0; i < number; i++) {
        ogg_stream_state *stream = &from[chance((unsigned)streams)];
        fill(&fields, 1 + chance((unsigned)atoi(argv[4])), to.most);
        ogg_packet packet = {oggpack_get_buffer(&fields), oggpack_bytes(&fields), 0, 0, i, 0};
        ogg_stream_packetin(stream, &packet);
        for (ogg_page page; ogg_stream_pageout(stream, &page) != 0;)
            send(&to, &page);
    }
    for (int i = 0; i < streams; i++)
        for (ogg_page page; ogg_stream_flush(&from[i], &page) != 0;)
            send(&to, &page);
    printf("%u packets, %u gaps, %08x\n", to.packets, to.lost, to.sum);
}
