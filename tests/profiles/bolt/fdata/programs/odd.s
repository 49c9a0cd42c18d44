# What compilers don't write: loop, a jump over a lock prefix, entries without a type or a size,
# functions that enter each other in the middle, int3 and ud2 in straight code, a jump to padding,
# data inside a function.
        .text
        .globl _start
        .type _start,@function
_start:
        call counted
        call short_loop
        call untyped
        call enters
        mov $60,%eax
        xor %edi,%edi
        syscall
        .size _start,.-_start

        .globl counted
        .type counted,@function
counted:
        xor %eax,%eax
1:      inc %eax
        cmp $10,%eax
        jl 1b
        lock incl count(%rip)
3:      dec %eax
        jnz 3b
        cmpl $0,count(%rip)
        je 4f
        lock
4:      incl count(%rip)
        call inner
        ret
        .globl inner
inner:
        nop
        ret
        .size counted,.-counted

        .globl short_loop
        .type short_loop,@function
short_loop:
        mov $5,%ecx
5:      loop 5b
        jrcxz 6f
        nop
6:      ret
        .size short_loop,.-short_loop

        .p2align 4
        .globl untyped
untyped:
        mov $3,%ecx
7:      dec %ecx
        jne 7b
        ret

        .p2align 4
        .globl enters
        .type enters,@function
enters:
        test %eax,%eax
        je middle
        cmp $7,%eax
        jne entered
        jmp 10f
        .size enters,.-enters
10:     .p2align 4
        .type entered,@function
entered:
        nop
        nop
middle: inc %eax
        cmp $3,%eax
        jne counted
        int3
        nop
        je 8f
        ud2
8:      jmp 9f
        nop
9:      ret
        .size entered,.-entered

        .globl recurses
        .type recurses,@function
recurses:
        dec %edi
        js 12f
        mov $2,%ebx
        jmp 11f
13:     call recurses
11:     dec %ebx
        jns 13b
12:     ret
        .size recurses,.-recurses

        .globl data_inside
        .type data_inside,@function
data_inside:
        test %eax,%eax
        je 14f
        jmp 14f
        .byte 0x06,0x07,0x0e,0x16
14:     ret
        .size data_inside,.-data_inside
        .globl zeros_behind
        .type zeros_behind,@function
zeros_behind:
        test %eax,%eax
        je 15f
        nop
15:     ret
        .byte 0
        .size zeros_behind,.-zeros_behind
        .bss
count:  .long 0
