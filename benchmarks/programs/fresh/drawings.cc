// Reads drawings (DXF), and writes what is in them again; built with dxflib.
// Arguments: how often, the version to write (12 or 2000; 0 to read only), and files.

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "dl_creationadapter.h"
#include "dl_dxf.h"

class Drawing : public DL_CreationAdapter {
  public:
    unsigned entities = 0, parts = 0, letters = 0;
    double sum = 0;

    Drawing(DL_Dxf &format, DL_WriterA *writer) : format(format), writer(writer) {}

    void addLayer(const DL_LayerData &data) override { tell(data.name); }
    void addBlock(const DL_BlockData &data) override { tell(data.name); }
    void addPoint(const DL_PointData &data) override {
        count(data.x + data.y);
        write(&DL_Dxf::writePoint, data);
    }
    void addLine(const DL_LineData &data) override {
        count(data.x1 + data.y1 - data.x2 - data.y2);
        write(&DL_Dxf::writeLine, data);
    }
    void addArc(const DL_ArcData &data) override {
        count(data.radius + data.angle1 - data.angle2);
        write(&DL_Dxf::writeArc, data);
    }
    void addCircle(const DL_CircleData &data) override {
        count(data.radius + data.cx);
        write(&DL_Dxf::writeCircle, data);
    }
    void addEllipse(const DL_EllipseData &data) override {
        count(data.ratio + data.mx + data.angle2);
        write(&DL_Dxf::writeEllipse, data);
    }
    void addSolid(const DL_SolidData &data) override {
        count(data.x[0] + data.y[2]);
        write(&DL_Dxf::writeSolid, data);
    }
    void addPolyline(const DL_PolylineData &data) override {
        count(data.number + data.flags);
        is_polyline = true;
        write(&DL_Dxf::writePolyline, data);
    }
    void addVertex(const DL_VertexData &data) override {
        part(data.x + data.y + data.bulge);
        if (writer && is_polyline)
            format.writeVertex(*writer, data);
    }
    void endEntity() override { endSequence(); }
    void endSequence() override {
        if (writer && is_polyline)
            format.writePolylineEnd(*writer);
        is_polyline = false;
    }
    void addSpline(const DL_SplineData &data) override { count(data.degree + data.nKnots); }
    void addControlPoint(const DL_ControlPointData &data) override {
        part(data.x + data.y + data.w);
        if (writer)
            format.writeControlPoint(*writer, data);
    }
    void addKnot(const DL_KnotData &data) override {
        part(data.k);
        if (writer)
            format.writeKnot(*writer, data);
    }
    void addInsert(const DL_InsertData &data) override {
        tell(data.name);
        count(data.ipx + data.angle);
        write(&DL_Dxf::writeInsert, data);
    }
    void addMTextChunk(const std::string &text) override { tell(text); }
    void addMText(const DL_MTextData &data) override {
        tell(data.text);
        count(data.height + data.width);
        write(&DL_Dxf::writeMText, data);
    }
    void addText(const DL_TextData &data) override {
        tell(data.text);
        count(data.height + data.angle);
        write(&DL_Dxf::writeText, data);
    }
    void addDimLinear(const DL_DimensionData &data, const DL_DimLinearData &edges) override {
        tell(data.text);
        count(edges.dpx1 + edges.dpy2);
        if (writer)
            format.writeDimLinear(*writer, data, edges, attributes);
    }
    void addDimRadial(const DL_DimensionData &data, const DL_DimRadialData &edges) override {
        tell(data.text);
        count(edges.dpx + edges.leader);
        if (writer)
            format.writeDimRadial(*writer, data, edges, attributes);
    }
    void addHatch(const DL_HatchData &data) override {
        tell(data.pattern);
        count(data.numLoops + data.scale);
        write(&DL_Dxf::writeHatch1, data);
    }
    void addHatchLoop(const DL_HatchLoopData &data) override { part(data.numEdges); }
    void addHatchEdge(const DL_HatchEdgeData &data) override {
        part(data.type == 1 ? data.x1 + data.y2 : data.type == 2 ? data.radius : 0);
        if (writer)
            format.writeHatchEdge(*writer, data);
    }

  private:
    DL_Dxf &format;
    DL_WriterA *writer;
    bool is_polyline = false;

    void tell(const std::string &text) { letters += static_cast<unsigned>(text.size()); }
    void part(double number) {
        parts++;
        sum += number;
    }
    void count(double number) {
        entities++;
        sum += number * (attributes.getColor() & 7);
    }
    template <class Data>
    void write(void (DL_Dxf::*how)(DL_WriterA &, const Data &, const DL_Attributes &),
               const Data &data) {
        if (writer)
            (format.*how)(*writer, data, attributes);
    }
};

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    for (int i = 3; i < argc; i++)
        for (int round = 0; round < atoi(argv[1]); round++) {
            DL_Dxf format, output;
            std::unique_ptr<DL_WriterA> writer;
            if (atoi(argv[2]))
                writer.reset(output.out("/dev/null", atoi(argv[2]) == 12 ? DL_VERSION_R12
                                                                         : DL_VERSION_2000));
            Drawing drawing(output, writer.get());
            if (!format.in(argv[i], &drawing))
                return 2;
            if (!round)
                printf("%u entities of %u parts, %u letters, %.6g\n", drawing.entities,
                       drawing.parts, drawing.letters, drawing.sum);
        }
}
