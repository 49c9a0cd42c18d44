// Learns from examples and tells what others are; built with LIBSVM.
// Arguments: the kinds of machine and kernel (as in svm.h), their parameters gamma, cost and nu,
// 1 for probabilities, how many parts there are of which each is told from the others (0: all are
// told from all), and a file of examples.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "svm.h"

struct Examples {
    std::vector<double> labels;
    std::vector<std::vector<svm_node>> values;
};

static Examples examples_in(const char *name) {
    Examples found;
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        double label;
        words >> label;
        found.labels.push_back(label);
        std::vector<svm_node> row;
        char colon;
        for (svm_node each; words >> each.index >> colon >> each.value;)
            row.push_back(each);
        row.push_back({-1, 0});
        found.values.push_back(row);
    }
    return found;
}

static double told(const svm_problem &problem, const svm_parameter &how, bool is_probable) {
    svm_model *model = svm_train(&problem, &how);
    std::vector<double> shares(size_t(svm_get_nr_class(model)) + 1);
    double sum = 0;
    for (int i = 0; i < problem.l; i++)
        sum += (i % 7 + 1) * (is_probable
                                  ? svm_predict_probability(model, problem.x[i], shares.data())
                                  : svm_predict(model, problem.x[i]));
    printf("%d vectors, ", svm_get_nr_sv(model));
    svm_free_and_destroy_model(&model);
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 9)
        return 2;
    svm_parameter how = {};
    how.svm_type = atoi(argv[1]), how.kernel_type = atoi(argv[2]);
    how.gamma = atof(argv[3]), how.C = atof(argv[4]), how.nu = atof(argv[5]);
    how.probability = atoi(argv[6]);
    how.degree = 3, how.coef0 = 0.5, how.p = 0.1, how.eps = 1e-3, how.cache_size = 16;
    how.shrinking = 1;
    int parts = atoi(argv[7]);
    Examples given = examples_in(argv[8]);
    std::vector<svm_node *> rows;
    for (std::vector<svm_node> &row : given.values)
        rows.push_back(row.data());
    svm_problem problem = {int(rows.size()), given.labels.data(), rows.data()};
    svm_set_print_string_function([](const char *) {});
    if (const char *wrong = svm_check_parameter(&problem, &how)) {
        printf("%s\n", wrong);
        return 2;
    }
    double sum = 0;
    if (parts) {
        std::vector<double> targets(rows.size());
        svm_cross_validation(&problem, &how, parts, targets.data());
        for (double each : targets)
            sum = sum * 0.5 + each;
    } else
        sum = told(problem, how, how.probability);
    printf("%.9g\n", sum);
}
