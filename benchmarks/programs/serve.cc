// A server of cpp-httplib that answers, once each, the requests it is started with.
//
//   serve /status          GET
//   serve /sort=3,1,2      POST, with a body
//
// A child of it asks: a client within the process would be code of the same start.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cpp-httplib/httplib.h"
#include "nlohmann/json.hpp"

using nlohmann::json;

static std::string asked(int port, const std::string &word) {
  auto mark = word.find('=');
  std::string body = mark == std::string::npos ? "" : word.substr(mark + 1);
  std::string request = (body.empty() ? "GET " : "POST ") + word.substr(0, mark) +
                        " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  request += "\r\n" + body;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(connection, reinterpret_cast<sockaddr *>(&to), sizeof to)) return "";
  (void)!write(connection, request.data(), request.size());
  std::string answer;
  char part[4096];
  for (ssize_t size; (size = read(connection, part, sizeof part)) > 0;) answer.append(part, size);
  close(connection);
  return answer;
}

static std::vector<double> numbers(const std::string &text) {
  std::vector<double> found;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) found.push_back(std::stod(word));
  return found;
}

int main(int argc, char **argv) {
  json config = json::parse(R"({"name": "serve", "limits": {"body": 65536}, "kinds": ["a", "b"]})");
  std::map<std::string, int> seen;
  httplib::Server server;
  server.set_payload_max_length(config["limits"]["body"].get<size_t>());
  server.new_task_queue = [] { return new httplib::ThreadPool(1); };
  server.set_logger([&](const httplib::Request &request, const httplib::Response &) {
    ++seen[request.method + request.path];
  });
  server.set_exception_handler([](const httplib::Request &, httplib::Response &response, auto) {
    response.status = 400;
  });
  server.Get("/status", [&](const httplib::Request &, httplib::Response &response) {
    response.set_content(json{{"config", config}, {"seen", seen}}.dump(1), "application/json");
  });
  server.Get(R"(/items/(\d+))", [](const httplib::Request &request, httplib::Response &response) {
    response.set_content(json(request.matches[1].str()).dump(), "application/json");
  });
  server.Post("/sort", [](const httplib::Request &request, httplib::Response &response) {
    auto found = numbers(request.body);
    std::sort(found.begin(), found.end());
    response.set_content(json(found).dump(), "application/json");
  });
  server.Post("/json", [](const httplib::Request &request, httplib::Response &response) {
    auto given = json::parse(request.body);
    response.set_content(given.flatten().dump(2), "application/json");
  });
  int port = server.bind_to_any_port("127.0.0.1");
  pid_t client = fork();
  if (client == 0) {
    bool all = true;
    for (int i = 1; i < argc; ++i) all &= asked(port, argv[i]).find(" 200 ") != std::string::npos;
    // Whoever waits for the child ends the server.
    _exit(!all);
  }
  int status = 1;
  std::thread stopper([&] {
    waitpid(client, &status, 0);
    server.stop();
  });
  server.listen_after_bind();
  stopper.join();
  return WEXITSTATUS(status);
}
