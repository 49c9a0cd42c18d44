// Lets bodies fall, collide and pull at each other; built with the Open Dynamics Engine.
// Arguments: a seed, the scene (heap, chains, cars or pins), how many bodies, how many steps, and 1
// for the quick solver. An odd number of bodies is kept in the order of places, an even one hashed.

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "ode/ode.h"

namespace {

std::mt19937 chance;

double between(double low, double high) {
    return low + (high - low) * double(chance()) / 4294967296.0;
}

dWorldID world;
dSpaceID space;
dJointGroupID contacts;
std::vector<dBodyID> bodies;

void collide(void *, dGeomID one, dGeomID other) {
    if (dGeomIsSpace(one) || dGeomIsSpace(other)) {
        dSpaceCollide2(one, other, nullptr, collide);
        return;
    }
    dBodyID first = dGeomGetBody(one), second = dGeomGetBody(other);
    if (first && second && dAreConnected(first, second))
        return;
    dContact found[6];
    int number = dCollide(one, other, 6, &found[0].geom, sizeof(dContact));
    for (int i = 0; i < number; i++) {
        found[i].surface.mode = dContactBounce | dContactApprox1;
        found[i].surface.mu = 0.8;
        found[i].surface.bounce = 0.2;
        found[i].surface.bounce_vel = 0.1;
        dJointAttach(dJointCreateContact(world, contacts, &found[i]), first, second);
    }
}

dBodyID body(int kind, double size, double x, double y, double z) {
    dBodyID made = dBodyCreate(world);
    dMass mass;
    dGeomID shape;
    if (kind == 0) {
        shape = dCreateBox(space, size, size * 0.7, size * 1.2);
        dMassSetBox(&mass, 1, size, size * 0.7, size * 1.2);
    } else if (kind == 1) {
        shape = dCreateSphere(space, size / 2);
        dMassSetSphere(&mass, 1, size / 2);
    } else {
        shape = dCreateCapsule(space, size / 3, size);
        dMassSetCapsule(&mass, 1, 3, size / 3, size);
    }
    dBodySetMass(made, &mass);
    dGeomSetBody(shape, made);
    dBodySetPosition(made, x, y, z);
    bodies.push_back(made);
    return made;
}

void heap(int number) {
    for (int i = 0; i < number; i++) {
        dMatrix3 turn;
        dRFromEulerAngles(turn, between(0, 3), between(0, 3), between(0, 3));
        dBodyID made = body(i % 3, between(0.3, 0.8), between(-1, 1), between(-1, 1), 1 + i * 0.4);
        dBodySetRotation(made, turn);
    }
}

void chains(int number) {
    for (int i = 0; i < number; i++) {
        int link = i % 8;
        double x = i / 8 * 0.9, z = 6;
        dBodyID made = body(2, 0.4, x + link * 0.5, between(-0.01, 0.01), z);
        dJointID joint =
            link % 2 ? dJointCreateHinge(world, nullptr) : dJointCreateBall(world, nullptr);
        dJointAttach(joint, made, link ? bodies[bodies.size() - 2] : nullptr);
        if (link % 2) {
            dJointSetHingeAnchor(joint, x + link * 0.5 - 0.25, 0, z);
            dJointSetHingeAxis(joint, 0, 1, 0);
            dJointSetHingeParam(joint, dParamLoStop, -1);
            dJointSetHingeParam(joint, dParamHiStop, 1);
        } else
            dJointSetBallAnchor(joint, x + link * 0.5 - 0.25, 0, z);
    }
}

void cars(int number) {
    for (int i = 0; i < number / 5; i++) {
        double x = i % 4 * 4, y = i / 4 * 3;
        dBodyID frame = body(0, 1.2, x, y, 1);
        for (int wheel = 0; wheel < 4; wheel++) {
            double at_x = x + (wheel % 2 ? 0.6 : -0.6), at_y = y + (wheel / 2 ? 0.6 : -0.6);
            dBodyID round = body(1, 0.6, at_x, at_y, 0.5);
            dJointID joint = dJointCreateHinge2(world, nullptr);
            dVector3 up = {0, 0, 1}, across = {0, 1, 0};
            dJointAttach(joint, frame, round);
            dJointSetHinge2Anchor(joint, at_x, at_y, 0.5);
            dJointSetHinge2Axes(joint, up, across);
            dJointSetHinge2Param(joint, dParamLoStop, wheel % 2 ? -0.4 : 0);
            dJointSetHinge2Param(joint, dParamHiStop, wheel % 2 ? 0.4 : 0);
            dJointSetHinge2Param(joint, dParamVel2, between(2, 9));
            dJointSetHinge2Param(joint, dParamFMax2, 2);
        }
    }
}

void pins(int number) {
    for (int i = 0; i < 60; i++)
        dGeomSetPosition(dCreateCylinder(space, 0.1, 3), i % 10 * 0.8, 0,
                         1 + i / 10 * 1.0 + i % 2 * 0.3);
    for (int i = 0; i < number; i++)
        body(1, between(0.2, 0.4), between(0, 8), between(-0.4, 0.4), 7 + i * 0.05);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    chance.seed(unsigned(atoi(argv[1])));
    dInitODE2(0);
    dRandSetSeed(unsigned(atoi(argv[1])));
    world = dWorldCreate();
    int number = atoi(argv[3]);
    space = number % 2 ? dSweepAndPruneSpaceCreate(nullptr, dSAP_AXES_XYZ)
                       : dHashSpaceCreate(nullptr);
    contacts = dJointGroupCreate(0);
    dWorldSetGravity(world, 0, 0, -9.81);
    dWorldSetCFM(world, 1e-5);
    dCreatePlane(space, 0, 0, 1, 0);
    switch (argv[2][0]) {
    case 'h': heap(number); break;
    case 'p': pins(number); break;
    default: argv[2][1] == 'h' ? chains(number) : cars(number);
    }
    for (int step = 0; step < atoi(argv[4]); step++) {
        dSpaceCollide(space, nullptr, collide);
        atoi(argv[5]) ? dWorldQuickStep(world, 0.01) : dWorldStep(world, 0.01);
        dJointGroupEmpty(contacts);
    }
    double sum = 0;
    for (dBodyID each : bodies) {
        const dReal *at = dBodyGetPosition(each);
        sum = sum * 0.9 + at[0] + 2 * at[1] + 3 * at[2];
    }
    printf("%zu bodies, %.9g\n", bodies.size(), sum);
    dSpaceDestroy(space);
    dWorldDestroy(world);
    dCloseODE();
}
