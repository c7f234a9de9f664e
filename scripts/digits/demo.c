/* Runs the compiled digits model on one of the ten held-out digits; draws the digit and the ten probabilities in the terminal
   and as a PNG.

       demo held_out.pgm DIGIT picture.png */

#include "digits.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, CLASSES = 10, BAR_COLUMNS = 40 };

static void fail(const char *what, const char *why) {
    fprintf(stderr, "demo: %s: %s\n", what, why);
    exit(1);
}

/* Reads the digit-th square of a plain PGM, in which the digits are one below the other; pixels are scaled from 0 (paper) to 1 (ink). */
static void read_digit(const char *path, int digit, float image[SIDE * SIDE]) {
    FILE *file = fopen(path, "r");
    if (!file) fail(path, "cannot be opened");
    int width = 0, height = 0, ink = 0;
    if (fscanf(file, "P2 #%*[^\n] %d %d %d", &width, &height, &ink) != 3 || width != SIDE || ink <= 0 ||
        height < (digit + 1) * SIDE)
        fail(path, "not a plain PGM of ten digits");
    for (int i = -digit * SIDE * SIDE; i < SIDE * SIDE; i++) {
        int pixel;
        if (fscanf(file, "%d", &pixel) != 1) fail(path, "ends too early");
        if (i >= 0) image[i] = (float)pixel / (float)ink;
    }
    fclose(file);
}

static int most_probable(const float probabilities[CLASSES]) {
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        if (probabilities[i] > probabilities[best]) best = i;
    return best;
}

/* Prints a bar with a resolution of an eighth of a column. */
static void print_bar(float fraction) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int length = (int)(fraction * BAR_COLUMNS * 8 + 0.5f);
    for (int i = 0; i < length / 8; i++) printf("█");
    printf("%s", eighths[length % 8]);
}

/* Prints ten lines: on the left the digit, between two empty lines; on the right a probability in each. */
static void print_picture(const float image[SIDE * SIDE], const float probabilities[CLASSES]) {
    static const char *const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    for (int row = 0; row < CLASSES; row++) {
        int y = row - (CLASSES - SIDE) / 2;
        printf("    ");
        for (int x = 0; x < SIDE; x++)
            printf("%s", y < 0 || y >= SIDE ? "  " : shades[(int)(image[y * SIDE + x] * 4 + 0.5f)]);
        printf("    %d %6.2f %%  ", row, 100 * (double)probabilities[row]);
        print_bar(probabilities[row]);
        printf("\n");
    }
}

/* ---- the same as a PNG ---- */

enum { MARGIN = 16, CELL = 30, LABEL = 30, BAR = 300, BAR_HEIGHT = 16, DOT = 3 };
enum { HEIGHT = 2 * MARGIN + SIDE * CELL, WIDTH = 4 * MARGIN + SIDE * CELL + LABEL + BAR };

static png_byte picture[HEIGHT][WIDTH];

static void fill(int left, int top, int width, int height, int grey) {
    for (int y = top; y < top + height; y++) memset(&picture[y][left], grey, (size_t)width);
}

/* The numerals, 3 pixels wide and 5 high; a row is three bits. */
static void draw_numeral(int left, int top, int numeral) {
    static const unsigned char rows[CLASSES][5] = {{7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {7, 1, 7, 4, 7}, {7, 1, 7, 1, 7},
                                                   {5, 5, 7, 1, 1}, {7, 4, 7, 1, 7}, {7, 4, 7, 5, 7}, {7, 1, 1, 1, 1},
                                                   {7, 5, 7, 5, 7}, {7, 5, 7, 1, 7}};
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 3; x++)
            if (rows[numeral][y] >> (2 - x) & 1) fill(left + x * DOT, top + y * DOT, DOT, DOT, 0);
}

static void write_picture(const char *path, const float image[SIDE * SIDE], const float probabilities[CLASSES]) {
    fill(0, 0, WIDTH, HEIGHT, 255);
    for (int i = 0; i < SIDE * SIDE; i++)
        fill(MARGIN + i % SIDE * CELL, MARGIN + i / SIDE * CELL, CELL, CELL, (int)(255 * (1 - image[i])));

    int left = 2 * MARGIN + SIDE * CELL, best = most_probable(probabilities);
    for (int i = 0; i < CLASSES; i++) {
        int top = MARGIN + i * SIDE * CELL / CLASSES + 4;
        draw_numeral(left, top, i);
        fill(left + LABEL, top, BAR, BAR_HEIGHT, 235);
        fill(left + LABEL, top, (int)(BAR * probabilities[i] + 0.5f), BAR_HEIGHT, i == best ? 0 : 120);
    }

    png_image header = {.version = PNG_IMAGE_VERSION, .width = WIDTH, .height = HEIGHT, .format = PNG_FORMAT_GRAY};
    if (!png_image_write_to_file(&header, path, 0, picture, 0, NULL)) fail(path, header.message);
}

int main(int argc, char **argv) {
    if (argc != 4 || strlen(argv[2]) != 1 || argv[2][0] < '0' || argv[2][0] > '9') {
        fprintf(stderr, "usage: demo held_out.pgm DIGIT picture.png, DIGIT from 0 to 9\n");
        return 2;
    }
    int digit = argv[2][0] - '0';
    float image[SIDE * SIDE], probabilities[CLASSES];
    read_digit(argv[1], digit, image);

    digits *session;
    if (digits_create(&session, NULL) != 0) fail("digits_create", digits_error(NULL));
    if (digits_run(session, image, probabilities) != 0) fail("digits_run", digits_error(session));
    digits_destroy(session);

    print_picture(image, probabilities);
    write_picture(argv[3], image, probabilities);
    printf("\n    A person wrote %d; the model says %d.\n", digit, most_probable(probabilities));
    return 0;
}
