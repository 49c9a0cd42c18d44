# What moved_main.s refers to: a function at 12 of .debug_info, "shared" at 5 of .debug_str.
        .section .note.gnu.build-id,"a",@note
        .long   4, 8, 3
        .asciz  "GNU"
        .quad   0x1122334455667788

        .section .debug_abbrev,"",@progbits
        .byte   1, 0x3c, 1, 0, 0
        .byte   2, 0x2e, 0, 0x03, 0x0e, 0x3b, 0x0b, 0, 0
        .byte   0

        .section .debug_str,"MS",@progbits,1
        .asciz  "main"
        .asciz  "shared"
        .asciz  "moved"

        .section .debug_info,"",@progbits
        .long   .Lbehind - .Lunit
.Lunit: .short  4
        .long   0
        .byte   8
        .byte   1
        .byte   2
        .long   12
        .byte   77
        .byte   0
.Lbehind:
