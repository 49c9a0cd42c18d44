# Branch profiles in a Makefile of GNU make.
#
#     include $(shell lbr2pgo share make)/lbr2pgo.mk
#     $(eval $(call lbr2pgo-profile,app.prof))
#     $(eval $(call lbr2pgo-bolt,app,app.fdata))
#     $(eval $(call lbr2pgo-propeller,app.propeller-cc,app.propeller-ld))   # or this
#     $(eval $(call lbr2pgo-startup,app.startup))                           # or this
#
#     CFLAGS = -O2 $(LBR2PGO_CFLAGS)
#     LDFLAGS = $(LBR2PGO_LDFLAGS)
#     app: app.o $(LBR2PGO_ORDER)
#         $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)
#         $(call lbr2pgo-check,$@)
#     app.o: $(LBR2PGO_PROFILE) $(LBR2PGO_LAYOUT)
#
# `make app.bolt` lays the linked program out anew. Two more arguments, the recordings and the binary
# that was recorded, make the profile first:
#
#     $(eval $(call lbr2pgo-profile,app.prof,perf.data,app.recorded))
#
# Profiles are clang's (`lbr2pgo convert --llvm`) or, where LBR2PGO_COMPILER is GCC, its own (--afdo).
#
# With LBR2PGO_PROBES = 1 before the include, code is compiled with pseudo probes: see docs/probes.md.
#
# With LBR2PGO_CARRY = 1 before the include, the counts of a committed profile are moved to where its
# lines are now (docs/carrying.md), in PROFILE.carried; where less than LBR2PGO_MIN_CARRIED of them is
# left, the command LBR2PGO_RETRAIN is run, which is to write PROFILE anew.
#
# `make LBR2PGO_TRAINING=1` is for a program that is recorded and not shipped: it uses no profile, and
# gives clang frame pointers, for call chains, and LBR2PGO_TRAINING_FLAGS behind all others.
# $(LBR2PGO_SUFFIX) is then `.training`, else empty: put it behind the names of the program and its
# objects, and both builds lie side by side.
#
# A file that isn't there yet gives a plain build and a line of warning. A stale profile is used, and
# how stale it is stands in the log, from 20 % on as a warning; one that is more than half stale, or
# another program's, ends the build. See docs/builds.md.

LBR2PGO ?= lbr2pgo
LBR2PGO_COMPILER ?= $(CC)
LBR2PGO_BOLT_OPTIONS ?=
LBR2PGO_PROBES ?=
LBR2PGO_CARRY ?=
LBR2PGO_MIN_CARRIED ?= 0.8
LBR2PGO_RETRAIN ?=
LBR2PGO_TRAINING ?=
LBR2PGO_TRAINING_FLAGS ?= -O1
LBR2PGO_SUFFIX := $(if $(LBR2PGO_TRAINING),.training)
LBR2PGO_MAX_STALE ?= 0.5
LBR2PGO_MAX_MISSING ?= 0.5
_lbr2pgo-gates = --max-stale $(LBR2PGO_MAX_STALE) --max-missing $(LBR2PGO_MAX_MISSING)

LBR2PGO_LDFLAGS := -Wl,--build-id

# $(call lbr2pgo-profile,PROFILE[,RECORDINGS,BINARY]): sets LBR2PGO_CFLAGS (for C++ too) and, if
# there is a profile, LBR2PGO_PROFILE, on which objects must depend. For one program in a Makefile.
define lbr2pgo-profile
LBR2PGO_PROFILE := $(if $(_lbr2pgo-debug),$(call _lbr2pgo-carried,$(call _lbr2pgo-usable,$1,$2,$3),$2))
LBR2PGO_CFLAGS := $(_lbr2pgo-debug) $(_lbr2pgo-train)
ifdef LBR2PGO_PROFILE
LBR2PGO_CFLAGS += $(_lbr2pgo-use)=$$(LBR2PGO_PROFILE)
$(call _lbr2pgo-rule,$1,$2,$3,$(_lbr2pgo-form))
endif
.DEFAULT_GOAL := $(.DEFAULT_GOAL)
endef

# $(call lbr2pgo-bolt,PROGRAM,FDATA[,RECORDINGS,BINARY]): a rule for PROGRAM.bolt. Neither
# function's rules become the default goal.
define lbr2pgo-bolt
LBR2PGO_LDFLAGS += -Wl,--emit-relocs
$1.bolt: $1 $(if $(call _lbr2pgo-missing,$(or $(strip $3 $4),$2)),,$2)
	$(LBR2PGO) bolt $1 -o $$@ --fdata $2 $(_lbr2pgo-gates) \
	    $(addprefix --option=,$(LBR2PGO_BOLT_OPTIONS))
$(if $(call _lbr2pgo-missing,$3 $4),,$(call _lbr2pgo-rule,$2,$3,$4,--fdata))
.DEFAULT_GOAL := $(.DEFAULT_GOAL)
endef

# $(call lbr2pgo-propeller,CLUSTERS,ORDER[,RECORDINGS,BINARY]): after lbr2pgo-profile. Sets, if both
# files are there, LBR2PGO_LAYOUT, on which objects must depend. For one program in a Makefile.
define lbr2pgo-propeller
LBR2PGO_LAYOUT := $(call _lbr2pgo-usable,$1,$3,$4)
LBR2PGO_CFLAGS += $(if $(LBR2PGO_TRAINING),,-fbasic-block-address-map -ffunction-sections)
LBR2PGO_LDFLAGS += -fuse-ld=lld -Wl,--lto-basic-block-address-map
ifdef LBR2PGO_LAYOUT
LBR2PGO_CFLAGS += -fbasic-block-sections=list=$1
LBR2PGO_LDFLAGS += -Wl,--lto-basic-block-sections=$1 -Wl,--no-warn-symbol-ordering \
    -Wl,--symbol-ordering-file=$2
$(call _lbr2pgo-rule,$1,$3,$4,--propeller-ld $2 --propeller-cc)
endif
.DEFAULT_GOAL := $(.DEFAULT_GOAL)
endef

# $(call lbr2pgo-startup,ORDER[,RECORDINGS,BINARY]): after lbr2pgo-profile. Sets, if the order of
# functions is there, LBR2PGO_ORDER, on which the program must depend. For one program in a Makefile.
define lbr2pgo-startup
LBR2PGO_ORDER := $(call _lbr2pgo-usable,$1,$2,$3)
LBR2PGO_CFLAGS += -ffunction-sections
ifdef LBR2PGO_ORDER
LBR2PGO_LDFLAGS += -fuse-ld=lld -Wl,--no-warn-symbol-ordering -Wl,--symbol-ordering-file=$1
$(call _lbr2pgo-rule,$1,$2,$3,--startup-order)
endif
.DEFAULT_GOAL := $(.DEFAULT_GOAL)
endef

# $(call lbr2pgo-check,PROGRAM): a command for the recipe that links. Says how stale the profile is;
# removes the program and fails if it, or the layout, does not fit.
lbr2pgo-check = $(foreach profile,$(LBR2PGO_PROFILE) $(LBR2PGO_LAYOUT) $(LBR2PGO_ORDER),$(LBR2PGO) \
    check $(profile) --binary $1 --format line $(_lbr2pgo-gates) || { rm -f $1; exit 1; };)

# Which of these files are not there.
_lbr2pgo-missing = $(filter-out $(wildcard $1),$1)

# The profile if it, or all that it is made of, is there; else nothing, and a warning. Training
# builds want none.
_lbr2pgo-usable = $(if $(LBR2PGO_TRAINING),,$(call _lbr2pgo-unless,$(call _lbr2pgo-missing,$(or \
    $(strip $2 $3),$1)),$1))
_lbr2pgo-unless = $(if $1,$(warning lbr2pgo: warning: there is no $1 yet: a plain build),$2)

# The profile, or where it is a committed one, what it is for the tree as it is now.
_lbr2pgo-carried = $(if $(and $1,$(LBR2PGO_CARRY),$(if $2,,stored)),$(call _lbr2pgo-carry,$1),$1)
_lbr2pgo-carry = $(info $(shell $(LBR2PGO) carry --committed $1 -o $1.carried \
    $(if $(LBR2PGO_RETRAIN),--min-carried $(LBR2PGO_MIN_CARRIED)) 2>&1 || \
    { $(or $(LBR2PGO_RETRAIN),false) >&2 && cp $1 $1.carried; }))$1.carried

# What any build needs whose samples shall find their lines; nothing if the compiler is too old.
_lbr2pgo-debug := -g1 -fdebug-info-for-profiling $(if $(LBR2PGO_PROBES),-fpseudo-probe-for-profiling)
# With probes, samples tell of branches, not what the source expects.
_lbr2pgo-use := $(if \
    $(LBR2PGO_PROBES),-Xclang -mllvm -Xclang -overwrite-existing-weights) -fprofile-sample-use
_lbr2pgo-form := --llvm
_lbr2pgo-refuses = $(shell $(LBR2PGO_COMPILER) $1 -x c -fsyntax-only /dev/null 2>&1)
# Both take -fno-auto-profile; what follows it is clang's own.
ifneq ($(and $(call _lbr2pgo-refuses,-fno-profile-sample-use),$(if $(call \
    _lbr2pgo-refuses,-fno-auto-profile),,gcc)),)
_lbr2pgo-debug := -g1
_lbr2pgo-use := -fauto-profile
_lbr2pgo-gcc := $(firstword $(subst ., ,$(shell $(LBR2PGO_COMPILER) -dumpversion)))
_lbr2pgo-form := --afdo-version $(if $(filter 1 2 3 4 5 6 7 8 9 10 11,$(_lbr2pgo-gcc)),1,$(if \
    $(filter 12 13 14 15,$(_lbr2pgo-gcc)),2,3)) --afdo
endif
ifneq ($(call _lbr2pgo-refuses,$(_lbr2pgo-debug)),)
$(warning lbr2pgo: warning: $(LBR2PGO_COMPILER) takes no $(_lbr2pgo-debug): a plain build)
_lbr2pgo-debug :=
endif

# What clang is given in a training build: frame pointers too, for call chains; with probes, calls
# that are alike stay apart, each with its own.
_lbr2pgo-frames := -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls
_lbr2pgo-kept := -mllvm -enable-tail-merge=0 -mllvm -simplifycfg-sink-common=0
_lbr2pgo-train := $(if $(LBR2PGO_TRAINING),$(if $(filter --llvm,$(_lbr2pgo-form)),$(if \
    $(_lbr2pgo-debug),$(_lbr2pgo-frames) $(if $(LBR2PGO_PROBES),$(_lbr2pgo-kept)) \
    $(LBR2PGO_TRAINING_FLAGS))))

# The rule that converts recordings, if there are any.
define _lbr2pgo-rule
$(if $2,$1: $2 $3
	$(LBR2PGO) convert $2 --binary $3 $4 $$@)
endef
