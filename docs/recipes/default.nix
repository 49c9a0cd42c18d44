# A Nix package whose program is built with a committed profile, app.prof: `nix-build --check` finds
# two builds equal. `nix-build -A retrained` trains it anew, the same way on every machine;
# docs/ci.md explains it.
{ pkgs ? import <nixpkgs> { }, lbr2pgo ? pkgs.python3Packages.lbr2pgo }:

let
  flags = "-O2 -g -fdebug-info-for-profiling";
  build = profile: pkgs.clangStdenv.mkDerivation {
    pname = "app";
    version = "1.0";
    src = pkgs.lib.cleanSource ./.;
    dontStrip = profile == null;
    NIX_CFLAGS_COMPILE = flags
      + pkgs.lib.optionalString (profile != null) " -fprofile-sample-use=${profile}";
    installPhase = "install -D app $out/bin/app";
  };
  plain = build null;
in
(build (if builtins.pathExists ./app.prof then ./app.prof else null)) // {
  retrained = pkgs.runCommand "app.prof" { nativeBuildInputs = [ lbr2pgo pkgs.qemu pkgs.gcc ]; } ''
    lbr2pgo record --reproducible -o train.data -- ${plain}/bin/app --an --input --that --is --typical
    mkdir $out
    lbr2pgo convert train.data.exact --binary ${plain}/bin/app --llvm $out/app.prof --stable --provenance
  '';
}
