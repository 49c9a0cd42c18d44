// Makes a video of a picture that is passed over, compresses it (H.264); built with
// OpenH264, with one thread and without its SIMD.
// Arguments: frames, width, height, the use (0: a camera, 1: a screen), the quantizer (0: as the
// rate wants), the rate (kbit/s), layers of time, 1 for arithmetic codes, how complex it may be (0
// to 2), pixels to pass over per frame, the noise, and a picture (P6).

#include <cmath>
#include <vector>

#include "codec_api.h"
#include "picture.h"

static unsigned state = 1;

static unsigned chance() { return state = state * 1664525 + 1013904223; }

static unsigned char clip(int value) {
    return static_cast<unsigned char>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// The frame (I420): a part of the picture at this place, with a box that moves the other way.
static void draw(const Picture &picture, int width, int height, int at, unsigned noise, std::vector<unsigned char> &out) {
    unsigned char *planes[] = {out.data(), out.data() + width * height,
                               out.data() + width * height * 5 / 4};
    int box = (width + height - at * 3 % (width + height)) % width;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            unsigned from_x = static_cast<unsigned>(x + at) % picture.width;
            unsigned from_y = static_cast<unsigned>(y + at / 2) % picture.height;
            const unsigned char *from = picture.pixels + (from_y * picture.width + from_x) * 3;
            bool in_box = abs(x - box) < 20 && abs(y - height / 2) < 30;
            int shake = noise ? static_cast<int>((chance() >> 16) % noise) : 0;
            int light = (from[0] * 77 + from[1] * 150 + from[2] * 29) >> 8;
            planes[0][y * width + x] = clip((in_box ? 255 - light : light) + shake);
            if (x % 2 == 0 && y % 2 == 0) {
                int to = y / 2 * (width / 2) + x / 2;
                planes[1][to] = clip(128 + (from[2] - light) / 2);
                planes[2][to] = clip(128 + (from[0] - light) / 2);
            }
        }
}

static void configure(ISVCEncoder *encoder, char **argv) {
    SEncParamExt settings;
    encoder->GetDefaultParams(&settings);
    int quantizer = atoi(argv[5]);
    settings.iUsageType = atoi(argv[4]) ? SCREEN_CONTENT_REAL_TIME : CAMERA_VIDEO_REAL_TIME;
    settings.iPicWidth = atoi(argv[2]);
    settings.iPicHeight = atoi(argv[3]);
    settings.fMaxFrameRate = 25;
    settings.iTargetBitrate = settings.iMaxBitrate = atoi(argv[6]) * 1000;
    settings.iRCMode = quantizer ? RC_OFF_MODE : RC_QUALITY_MODE;
    settings.bEnableFrameSkip = false;
    settings.iTemporalLayerNum = atoi(argv[7]);
    settings.iEntropyCodingModeFlag = atoi(argv[8]);
    settings.iComplexityMode = static_cast<ECOMPLEXITY_MODE>(atoi(argv[9]));
    settings.iMultipleThreadIdc = 1;
    settings.uiIntraPeriod = 32;
    SSpatialLayerConfig &layer = settings.sSpatialLayers[0];
    layer.iVideoWidth = settings.iPicWidth;
    layer.iVideoHeight = settings.iPicHeight;
    layer.fFrameRate = settings.fMaxFrameRate;
    layer.iSpatialBitrate = layer.iMaxSpatialBitrate = settings.iTargetBitrate;
    layer.iDLayerQp = quantizer;
    if (encoder->InitializeExt(&settings) != cmResultSuccess)
        exit(1);
}

int main(int argc, char **argv) {
    Picture picture;
    if (argc != 13 || !load(argv[12], &picture))
        return 2;
    int width = atoi(argv[2]), height = atoi(argv[3]), quiet = WELS_LOG_QUIET;
    ISVCEncoder *encoder = nullptr;
    if (WelsCreateSVCEncoder(&encoder))
        return 1;
    encoder->SetOption(ENCODER_OPTION_TRACE_LEVEL, &quiet);
    configure(encoder, argv);
    std::vector<unsigned char> frame(static_cast<size_t>(width * height * 3 / 2));
    unsigned sum = 0, keys = 0;
    size_t size = 0;
    for (int number = 0; number < atoi(argv[1]); number++) {
        draw(picture, width, height, number * atoi(argv[10]),
             static_cast<unsigned>(atoi(argv[11])), frame);
        SSourcePicture source = {};
        source.iColorFormat = videoFormatI420;
        source.iPicWidth = source.iStride[0] = width;
        source.iPicHeight = height;
        source.iStride[1] = source.iStride[2] = width / 2;
        source.pData[0] = frame.data();
        source.pData[1] = frame.data() + width * height;
        source.pData[2] = frame.data() + width * height * 5 / 4;
        source.uiTimeStamp = number * 40;
        SFrameBSInfo made = {};
        if (encoder->EncodeFrame(&source, &made) != cmResultSuccess)
            return 1;
        keys += made.eFrameType == videoFrameTypeIDR;
        for (int layer = 0; layer < made.iLayerNum; layer++) {
            const unsigned char *bytes = made.sLayerInfo[layer].pBsBuf;
            for (int unit = 0; unit < made.sLayerInfo[layer].iNalCount; unit++)
                for (int left = made.sLayerInfo[layer].pNalLengthInByte[unit]; left; left--, size++)
                    sum = sum * 31 + *bytes++;
        }
    }
    encoder->Uninitialize();
    WelsDestroySVCEncoder(encoder);
    printf("%zu bytes, %u whole frames, %08x\n", size, keys, sum);
}
