// Reads where atoms of large molecules are, and what is near to what; built with MMDB.
// Arguments: how often, what is done (letters: s for secondary structure, c for contacts, n for
// neighbours, b for bonds, p for chains laid over the first, o for the other format, written), a
// selection (as in mmdb_selmngr.h), the most that atoms in contact are apart, and files (PDB).

#include <cstdio>
#include <cstdlib>

#include "mmdb_manager.h"
#include "mmdb_seqsuperpose.h"

using namespace mmdb;

static void tell_structure(Manager &from) {
    int counts[8] = {};
    from.GetModel(1)->CalcSecStructure(true);
    PPResidue residues;
    int number, handle = from.NewSelection();
    from.Select(handle, STYPE_RESIDUE, "*", SKEY_NEW);
    from.GetSelIndex(handle, residues, number);
    for (int i = 0; i < number; i++)
        counts[residues[i]->SSE & 7]++;
    from.DeleteSelection(handle);
    for (int each : counts)
        printf(" %d", each);
}

static void tell_contacts(Manager &from, PPAtom atoms, int number, double most) {
    PContact contacts = nullptr;
    int found = 0;
    from.SeekContacts(atoms, number, atoms, number, 0, most, 1, contacts, found, 0);
    double sum = 0;
    for (int i = 0; i < found; i++)
        sum += contacts[i].dist;
    delete[] contacts;
    printf(" %d contacts, %.6g", found, sum);
}

static void tell_neighbours(Manager &from, PPAtom atoms, int number, double most) {
    int handle = from.NewSelection();
    from.SelectNeighbours(handle, STYPE_RESIDUE, atoms, number, 0, most, SKEY_NEW);
    printf(" %d residues", from.GetSelLength(handle));
    from.DeleteSelection(handle);
}

static void tell_bonds(Manager &from, PPAtom atoms, int number) {
    int bonds = 0;
    from.MakeBonds(true);
    for (int i = 0; i < number; i++)
        bonds += atoms[i]->GetNBonds();
    printf(" %d bonds", bonds);
}

static void lay_over(Manager &from) {
    PModel model = from.GetModel(1);
    int first = from.NewSelection(), other = from.NewSelection(), counts[2];
    PPAtom atoms[2];
    for (int chain = 1; chain < model->GetNumberOfChains(); chain++) {
        SeqSuperpose laid;
        from.Select(first, STYPE_ATOM, 0, model->GetChain(0)->GetChainID(), ANY_RES, "*", ANY_RES,
                    "*", "*", "CA", "*", "*", SKEY_NEW);
        from.Select(other, STYPE_ATOM, 0, model->GetChain(chain)->GetChainID(), ANY_RES, "*",
                    ANY_RES, "*", "*", "CA", "*", "*", SKEY_NEW);
        from.GetSelIndex(first, atoms[0], counts[0]);
        from.GetSelIndex(other, atoms[1], counts[1]);
        laid.Superpose(&from, atoms[1], counts[1], atoms[0], counts[0], 0.1, false);
        printf(" %d at %.4g", laid.Nalign, laid.rmsd);
    }
    from.DeleteSelection(first);
    from.DeleteSelection(other);
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    InitMatType();
    for (int i = 5; i < argc; i++)
        for (int round = 0; round < atoi(argv[1]); round++) {
            Manager from;
            from.SetFlag(MMDBF_PrintCIFWarnings | MMDBF_IgnoreNonCoorPDBErrors);
            if (from.ReadCoorFile(argv[i]) != Error_NoError)
                return 2;
            PPAtom atoms;
            int number, handle = from.NewSelection();
            from.Select(handle, STYPE_ATOM, argv[3], SKEY_NEW);
            from.GetSelIndex(handle, atoms, number);
            printf("%d atoms", number);
            for (const char *what = argv[2]; *what; what++)
                switch (*what) {
                case 's': tell_structure(from); break;
                case 'c': tell_contacts(from, atoms, number, atof(argv[4])); break;
                case 'n': tell_neighbours(from, atoms, number, atof(argv[4])); break;
                case 'b': tell_bonds(from, atoms, number); break;
                case 'p': lay_over(from); break;
                default: from.WriteCIFASCII("stdout");
                }
            printf("\n");
        }
}
