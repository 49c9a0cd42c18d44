// Makes trees of elements by chance, writes them as EBML, reads them, and looks for elements in
// them; built with libebml.
// Arguments: a seed, how many trees, how many elements each, what they are ("u", "i", "f": numbers,
// "s", "t": texts, "d": days, "b": bytes, "v": gaps, "n": more of a tree, "x": what a reader does
// not know; each as often as it is written), the most bytes of a text, 1 for checksums, and 1 to
// keep what a reader does not know.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "ebml/EbmlBinary.h"
#include "ebml/EbmlContexts.h"
#include "ebml/EbmlDate.h"
#include "ebml/EbmlFloat.h"
#include "ebml/EbmlMaster.h"
#include "ebml/EbmlSInteger.h"
#include "ebml/EbmlStream.h"
#include "ebml/EbmlString.h"
#include "ebml/EbmlUInteger.h"
#include "ebml/EbmlUnicodeString.h"
#include "ebml/EbmlVoid.h"
#include "ebml/MemIOCallback.h"

using namespace libebml;

#define ELEMENT(name, kind)                                                                        \
    class name : public kind {                                                                     \
      public:                                                                                      \
        name();                                                                                    \
        EBML_CONCRETE_CLASS(name)                                                                  \
    };

ELEMENT(Tree, EbmlMaster)
ELEMENT(Count, EbmlUInteger)
ELEMENT(Offset, EbmlSInteger)
ELEMENT(Ratio, EbmlFloat)
ELEMENT(Name, EbmlString)
ELEMENT(Title, EbmlUnicodeString)
ELEMENT(Day, EbmlDate)
ELEMENT(Unknown, EbmlString)

class Bytes : public EbmlBinary {
  public:
    Bytes() = default;
    bool ValidateSize() const override { return true; }
    EBML_CONCRETE_CLASS(Bytes)
};

DEFINE_START_SEMANTIC(Tree)
DEFINE_SEMANTIC_ITEM(true, true, Count)
DEFINE_SEMANTIC_ITEM(false, false, Offset)
DEFINE_SEMANTIC_ITEM(false, false, Ratio)
DEFINE_SEMANTIC_ITEM(false, false, Name)
DEFINE_SEMANTIC_ITEM(false, false, Title)
DEFINE_SEMANTIC_ITEM(false, false, Day)
DEFINE_SEMANTIC_ITEM(false, false, Bytes)
DEFINE_SEMANTIC_ITEM(false, false, Tree)
DEFINE_END_SEMANTIC(Tree)

DEFINE_EBML_MASTER_ORPHAN(Tree, 0x1A45DFA4, 4, "Tree")
Tree::Tree() : EbmlMaster(Context_Tree) {}
DEFINE_EBML_CLASS(Count, 0x81, 1, Tree, "Count")
DEFINE_EBML_CLASS(Offset, 0x4282, 2, Tree, "Offset")
DEFINE_EBML_CLASS(Ratio, 0x83, 1, Tree, "Ratio")
DEFINE_EBML_CLASS(Name, 0x84, 1, Tree, "Name")
DEFINE_EBML_CLASS(Title, 0x4285, 2, Tree, "Title")
DEFINE_EBML_CLASS(Day, 0x234567, 3, Tree, "Day")
DEFINE_EBML_CLASS(Unknown, 0x4299, 2, Tree, "Unknown")
static const EbmlId Id_Bytes(0x86, 1);
static const EbmlSemanticContext Context_Bytes(0, nullptr, &Context_Tree, *GetEbmlGlobal_Context,
                                               &EBML_INFO(Bytes));
const EbmlCallbacks Bytes::ClassInfos(Bytes::Create, Id_Bytes, "Bytes", Context_Bytes);

static std::mt19937 chance;
static unsigned sum, read_elements;
static bool has_checksums;

static unsigned below(unsigned most) { return chance() % most; }

static std::string text(unsigned most) {
    static std::string words;
    while (words.size() < most * 2u + 5000)
        words += "etaoin shrdlu"[below(13)];
    return words.substr(below(5000), below(most) + 1);
}

template <class Kind> static Kind &added(EbmlMaster &to) {
    auto made = new Kind;
    to.PushElement(*made);
    return *made;
}

static void add(EbmlMaster &to, char kind, unsigned most) {
    switch (kind) {
    case 'u': added<Count>(to).SetValue(chance() >> below(32)); break;
    case 'i': added<Offset>(to).SetValue(static_cast<int>(chance()) >> below(32)); break;
    case 'f':
        if (Ratio &made = added<Ratio>(to); below(2))
            made.SetPrecision(EbmlFloat::FLOAT_64);
        static_cast<Ratio *>(to[to.ListSize() - 1])->SetValue(below(1000) / 8.0);
        break;
    case 's': added<Name>(to).SetValue(text(most)); break;
    case 't': added<Title>(to).SetValueUTF8(text(most) + "\xc3\xa4\xe4\xb8\x80"); break;
    case 'd': added<Day>(to).SetEpochDate(static_cast<int32>(below(1u << 31))); break;
    case 'v': added<EbmlVoid>(to).SetSize(below(most) + 1); break;
    case 'b': {
        std::string made = text(most);
        added<Bytes>(to).CopyBuffer(reinterpret_cast<const binary *>(made.data()),
                                    static_cast<uint32>(made.size()));
        break;
    }
    default: added<Unknown>(to).SetValue(text(most));
    }
}

static void grow(EbmlMaster &to, unsigned number, const char *kinds, unsigned most) {
    to.EnableChecksum(has_checksums);
    static_cast<Count *>(to[0])->SetValue(number); // It must be there.
    for (unsigned made = 1; made < number;) {
        char kind = kinds[below(static_cast<unsigned>(strlen(kinds)))];
        if (kind == 'n') {
            unsigned part = below(number - made) + 1;
            grow(added<Tree>(to), part, kinds, most);
            made += part;
        } else {
            add(to, kind, most);
            made++;
        }
    }
}

static void tell(const EbmlMaster &tree) {
    for (const EbmlElement *each : tree.GetElementList()) {
        read_elements++;
        sum = sum * 31 + EbmlId(*each).GetValue() + static_cast<unsigned>(each->GetSize());
        if (auto more = dynamic_cast<const Tree *>(each))
            tell(*more);
        else if (auto number = dynamic_cast<const EbmlUInteger *>(each))
            sum += static_cast<unsigned>(static_cast<uint64>(*number));
        else if (auto offset = dynamic_cast<const EbmlSInteger *>(each))
            sum -= static_cast<unsigned>(static_cast<int64>(*offset));
        else if (auto ratio = dynamic_cast<const EbmlFloat *>(each))
            sum += static_cast<unsigned>(static_cast<double>(*ratio) * 8);
        else if (auto title = dynamic_cast<const EbmlUnicodeString *>(each))
            sum += static_cast<unsigned>(title->GetValueUTF8().size());
        else if (auto day = dynamic_cast<const EbmlDate *>(each))
            sum ^= static_cast<unsigned>(day->GetEpochDate());
    }
    sum += tree.CheckMandatory() + 2u * tree.VerifyChecksum();
    for (const EbmlElement *each = tree.FindFirstElt(EBML_INFO(Name)); each && below(50);
         each = tree.FindNextElt(*each))
        sum = sum * 31 + static_cast<const Name *>(each)->GetValue()[0];
}

int main(int argc, char **argv) {
    if (argc != 8)
        return 2;
    chance.seed(static_cast<unsigned>(atoi(argv[1])));
    has_checksums = atoi(argv[6]) == 1;
    uint64 written = 0;
    for (int i = 0; i < atoi(argv[2]); i++) {
        Tree tree;
        grow(tree, static_cast<unsigned>(atoi(argv[3])), argv[4],
             static_cast<unsigned>(atoi(argv[5])));
        MemIOCallback memory;
        written += tree.Render(memory);
        memory.setFilePointer(0);
        EbmlStream stream(memory);
        std::unique_ptr<EbmlElement> top(stream.FindNextID(EBML_INFO(Tree), 1u << 31));
        int upper = 0;
        EbmlElement *found = nullptr;
        if (!top)
            return 1;
        top->Read(stream, EBML_CONTEXT(top), upper, found, atoi(argv[7]) == 1, SCOPE_ALL_DATA);
        auto &read = static_cast<Tree &>(*top);
        tell(read);
        read.Sort();
        sum = sum * 31 + EbmlId(*read[read.ListSize() / 2]).GetValue();
    }
    printf("%llu bytes, %u elements, %08x\n", static_cast<unsigned long long>(written),
           read_elements, sum);
}
