// Everything that controls flow, and neighbours in the encoding that do not.
.text
.globl _start
_start:
 b foo
 bl foo
 b.eq foo
 bc.ne foo
 b.al foo
 cbz x1, foo
 cbnz w1, foo
 tbz x1, #40, foo
 tbnz w1, #4, foo
 cbgt x1, x2, foo
 cbeq w1, #4, foo
 cbbhi w1, w2, foo
 cbhne w1, w2, foo
 cblt x1, #4, foo
 br x1
 braa x1, x2
 braaz x1
 brab x1, x2
 blr x1
 blraa x1, x2
 blrabz x1
 ret
 ret x1
 retaa
 retab
 retaasppc #-4
 retabsppc #-8
 retaasppcr x1
 eret
 eretaa
 drps
 svc #0
 hvc #1
 smc #2
 brk #1
 hlt #1
 dcps1
 udf #3
 bti c
 paciasp
 autiasp
 xpaci x1
 ldraa x1, [x2]
 hint #34
 wfi
 wfe
 isb
 smstart
 cpyfp [x0]!, [x1]!, x2!
 ldr x0, foo
 adr x0, foo
foo: ret
