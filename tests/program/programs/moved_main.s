# A program whose debug information was partly moved to a file of its own, as dwz does.
        .text
        .globl  _start
_start: nop
        ret
.Lend:
        .section .gnu_debugaltlink,"",@progbits
        .asciz  "shared.debug"
        .quad   0x1122334455667788

        .section .debug_abbrev,"",@progbits
        # Unit: name as DW_FORM_GNU_strp_alt (0x1f21), low and high pc.
        .byte   1, 0x11, 1, 0x03, 0xa1, 0x3e, 0x11, 1, 0x12, 6, 0, 0
        # Function: abstract origin as DW_FORM_GNU_ref_alt (0x1f20), low and high pc.
        .byte   2, 0x2e, 0, 0x31, 0xa0, 0x3e, 0x11, 1, 0x12, 6, 0, 0
        # Function: name as DW_FORM_GNU_strp_alt, low and high pc.
        .byte   3, 0x2e, 0, 0x03, 0xa1, 0x3e, 0x11, 1, 0x12, 6, 0, 0
        .byte   0

        .section .debug_info,"",@progbits
        .long   .Lbehind - .Lunit
.Lunit: .short  4
        .long   0
        .byte   8
        .byte   1
        .long   5
        .quad   _start
        .long   .Lend - _start
        .byte   2
        .long   12
        .quad   _start
        .long   1
        .byte   3
        .long   5
        .quad   _start + 1
        .long   1
        .byte   0
.Lbehind:
