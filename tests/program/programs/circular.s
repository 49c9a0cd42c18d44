# Functions whose descriptions refer to each other in a circle, and numbers of unusual forms.
        .text
        .globl  _start
_start: .file   1 "circular.c"
        .loc    1 5 0
        nop
        .loc    1 6 0
        ret
.Lend:
        .section .debug_abbrev,"",@progbits
        # 1, unit: low and high pc, lines.
        .byte   1, 0x11, 1, 0x11, 1, 0x12, 6, 0x10, 0x17, 0, 0
        # 2, function: name, line of declaration as DW_FORM_sdata, low and high pc.
        .byte   2, 0x2e, 1, 0x03, 8, 0x3b, 0x0d, 0x11, 1, 0x12, 6, 0, 0
        # 3, function without code: name, line of declaration, abstract origin.
        .byte   3, 0x2e, 0, 0x03, 8, 0x3b, 0x0b, 0x31, 0x13, 0, 0
        # 4, inlined call: abstract origin, low and high pc, line as DW_FORM_sdata, file.
        .byte   4, 0x1d, 0, 0x31, 0x13, 0x11, 1, 0x12, 6, 0x59, 0x0d, 0x58, 0x0b, 0, 0
        # 5, function: abstract origin, low and high pc.
        .byte   5, 0x2e, 0, 0x31, 0x13, 0x11, 1, 0x12, 6, 0, 0
        # 6, function without code: abstract origin, specification.
        .byte   6, 0x2e, 0, 0x31, 0x13, 0x47, 0x13, 0, 0
        .byte   0

        .section .debug_info,"",@progbits
.Lunit: .long   .Lbehind - .Lversion
.Lversion:
        .short  4
        .long   0
        .byte   8
        .byte   1
        .quad   _start
        .long   .Lend - _start
        .long   0
        .byte   2
        .asciz  "outer"
        .byte   42
        .quad   _start
        .long   1
        .byte   4
        .long   .Lself - .Lunit
        .quad   _start
        .long   1
        .byte   33
        .byte   1
        .byte   0
.Lself: .byte   3
        .asciz  "itself"
        .byte   9
        .long   .Lself - .Lunit
        .byte   5
        .long   .Lone - .Lunit
        .quad   _start + 1
        .long   1
.Lone:  .byte   6
        .long   .Ltwo - .Lunit
        .long   .Lone - .Lunit
.Ltwo:  .byte   6
        .long   .Lone - .Lunit
        .long   .Lself - .Lunit
        .byte   0
.Lbehind:
