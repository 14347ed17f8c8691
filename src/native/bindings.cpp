// The Python module `_native`: passes checked arguments to the engine, and releases the interpreter's
// lock while computing.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "checks.h"
#include "dispatch.h"
#include "fma_peak.h"
#include "work_queue.h"

namespace slimfl {

namespace {

using namespace nb::literals;
using Channels = std::array<int, 3>;

// Mean losses, NaN for a width never visited.
nb::object mean_losses(const std::vector<LossSum>& losses) {
    std::vector<double> means;
    for (const LossSum& sum : losses) {
        means.push_back(sum.images == 0 ? std::numeric_limits<double>::quiet_NaN()
                                        : sum.total / static_cast<double>(sum.images));
    }
    return to_numpy(std::move(means));
}

nb::tuple device_result(Device& device) {
    return nb::make_tuple(to_numpy(std::move(device.theta)), device.state.steps, mean_losses(device.losses));
}

class Network {
public:
    Network(int in_channels, int height, int width, const Channels& channels, int classes,
            const std::vector<Channels>& active, const std::string& simd)
        : shapes_(in_channels, height, width, to_active(channels), classes, to_active(active)),
          level_(find_level(simd)) {}

    std::size_t parameter_count() const { return shapes_.total; }
    std::string simd() const { return level_.name; }

    double textbook_flops(const std::string& algorithm, std::optional<int> width_index) const {
        return shapes_.textbook_flops(trained_widths(algorithm, width_index));
    }
    double shared_flops(const std::string& algorithm, std::optional<int> width_index) const {
        return shapes_.shared_flops(trained_widths(algorithm, width_index));
    }
    double executed_flops(const std::string& algorithm, std::optional<int> width_index) const {
        return shapes_.executed_flops(trained_widths(algorithm, width_index));
    }

    // The seam at which tests compare with torch; training goes through train_cohort.
    nb::tuple gradient(nb::object theta_object, nb::object images, nb::object labels, nb::object index_object,
                       nb::object mean, nb::object deviation, const std::string& algorithm, nb::object weights,
                       nb::object visits_object, std::optional<int> width_index) const {
        const Input<float> theta = check_theta(theta_object);
        const CheckedData data = check_data(shapes_, images, labels, mean, deviation);
        const Method method = check_method(shapes_, algorithm, "accumulate", weights, width_index);
        Input<std::int64_t> index(index_object, "index");
        index.shaped("index", {-1});
        require(index.size() > 0, "index must not be empty");
        check_range(index, data.count, "index");
        std::optional<Input<std::uint8_t>> visits;
        if (!visits_object.is_none() && method.algorithm != Algorithm::one_width) {
            visits.emplace(visits_object, "visits");
            visits->shaped("visits", {shapes_.widths()});
            require(visits_a_width(shapes_, visits->data()), "visits must include at least one width");
        }
        std::vector<float> gradient(shapes_.total);
        std::vector<LossSum> losses(static_cast<std::size_t>(shapes_.widths()));
        {
            const nb::gil_scoped_release unlocked;
            const std::unique_ptr<Engine> engine(level_.create_engine(shapes_));
            Trainer(shapes_, *engine, data.data, method)
                .gradient(theta.data(), Batch{index.data(), index.size()}, visits ? visits->data() : nullptr,
                          gradient.data(), losses);
        }
        return nb::make_tuple(to_numpy(std::move(gradient)), mean_losses(losses));
    }

    nb::list train_cohort(nb::object theta_object, nb::list device_tuples, nb::object images, nb::object labels,
                          nb::object mean, nb::object deviation, const std::string& algorithm, const std::string& mode,
                          nb::object weights, std::optional<int> width_index, const std::string& optimiser,
                          const std::array<double, 2>& betas, double eps, double weight_decay, double momentum,
                          bool nesterov, int threads) const {
        check_threads(threads);
        nb::list own_thetas;
        const bool one_each = nb::try_cast<nb::list>(theta_object, own_thetas, false);
        require(!one_each || own_thetas.size() == device_tuples.size(),
                "theta must be one vector, or a list with one for each device");
        std::optional<Input<float>> shared;
        if (!one_each) {
            shared.emplace(check_theta(theta_object));
        }
        const CheckedData data = check_data(shapes_, images, labels, mean, deviation);
        const Method method = check_method(shapes_, algorithm, mode, weights, width_index);
        const OptimiserOptions options = check_optimiser(optimiser, betas, eps, weight_decay, momentum, nesterov);
        std::vector<Device> devices;
        std::set<const float*> states;
        for (nb::handle item : device_tuples) {
            nb::tuple fields;
            require(nb::try_cast<nb::tuple>(item, fields, false) && fields.size() == 7,
                    "a device must be a tuple (order, batch_offsets, m, v, step, learning_rates, visits)");
            std::int64_t step = 0;
            require(nb::try_cast<std::int64_t>(fields[4], step), "step must be an integer");
            const Input<float> theta = one_each ? check_theta(own_thetas[devices.size()]) : *shared;
            devices.push_back(check_device(shapes_, method, data, theta, fields[0], fields[1], fields[2], fields[3],
                                           step, fields[5], fields[6]));
            const bool fresh = states.insert(devices.back().first.data()).second &&
                               states.insert(devices.back().second.data()).second;
            require(fresh, "no two devices may share the arrays m or v");
        }
        run(devices, data.data, method, options, threads);
        nb::list results;
        for (Device& device : devices) {
            results.append(device_result(device));
        }
        return results;
    }

    nb::object evaluate(nb::object theta_object, nb::object images, nb::object labels, nb::object mean,
                        nb::object deviation, nb::object width_index, int threads, nb::object index_object) const {
        check_threads(threads);
        const Input<float> theta = check_theta(theta_object);
        const CheckedData data = check_data(shapes_, images, labels, mean, deviation);
        const bool single = nb::isinstance<nb::int_>(width_index);
        std::vector<int> asked;
        require(single ? nb::try_cast<int>(width_index, asked.emplace_back())
                       : nb::try_cast<std::vector<int>>(width_index, asked),
                "width_index must be an integer or a list of integers");
        for (int w : asked) {
            require(w >= 0 && w < shapes_.widths(), "width_index must name one of the widths");
        }
        std::vector<std::int64_t> index;
        if (index_object.is_none()) {
            index.resize(static_cast<std::size_t>(data.count));
            std::iota(index.begin(), index.end(), std::int64_t{0});
        } else {
            Input<std::int64_t> given(index_object, "index");
            given.shaped("index", {-1});
            check_range(given, data.count, "index");
            index.assign(given.data(), given.data() + given.size());
        }
        const std::set<int> ordered(asked.begin(), asked.end());
        const std::vector<int> widths(ordered.begin(), ordered.end());
        const std::vector<Score> scores = [&] {
            const nb::gil_scoped_release unlocked;
            return score(theta.data(), data.data, index, widths, threads);
        }();
        nb::list results;
        for (int w : asked) {
            const auto position = std::lower_bound(widths.begin(), widths.end(), w) - widths.begin();
            const Score& s = scores[static_cast<std::size_t>(position)];
            results.append(nb::make_tuple(s.correct, s.loss));
        }
        return single ? nb::object(results[0]) : nb::object(results);
    }

private:
    static Active to_active(const Channels& channels) { return Active{channels[0], channels[1], channels[2]}; }

    static std::vector<Active> to_active(const std::vector<Channels>& list) {
        std::vector<Active> result;
        for (const Channels& channels : list) {
            result.push_back(to_active(channels));
        }
        return result;
    }

    static void check_threads(int threads) {
        require(threads >= 1 && threads <= 1024, "threads must be between 1 and 1024");
    }

    Input<float> check_theta(nb::handle object) const {
        Input<float> theta(object, "theta");
        theta.shaped("theta", {static_cast<std::int64_t>(shapes_.total)});
        return theta;
    }

    std::vector<int> trained_widths(const std::string& algorithm, std::optional<int> width_index) const {
        const Method method = check_method(shapes_, algorithm, "accumulate", nb::none(), width_index);
        if (method.algorithm == Algorithm::one_width) {
            return {method.one_width};
        }
        std::vector<int> widths(static_cast<std::size_t>(shapes_.widths()));
        std::iota(widths.begin(), widths.end(), 0);
        return widths;
    }

    // Trains all devices, the one with the most images first.
    void run(std::vector<Device>& devices, const Dataset& data, const Method& method, const OptimiserOptions& options,
             int threads) const {
        const nb::gil_scoped_release unlocked;
        std::vector<std::int64_t> sizes;
        for (const Device& device : devices) {
            sizes.push_back(device.offsets.data()[device.learning_rates.size()] - device.offsets.data()[0]);
        }
        std::vector<std::unique_ptr<Engine>> engines(static_cast<std::size_t>(threads));
        run_queue(sizes, threads, [&](std::size_t worker, std::size_t task) {
            std::unique_ptr<Engine>& engine = engines[worker];
            if (!engine) {
                engine.reset(level_.create_engine(shapes_));
            }
            Device& device = devices[task];
            Trainer(shapes_, *engine, data, method)
                .train(device.theta.data(), device.state, device.schedule(), options, device.losses);
        });
    }

    // Scores fixed pieces of the index and adds them in order, so the thread does not matter.
    std::vector<Score> score(const float* theta, const Dataset& data, const std::vector<std::int64_t>& index,
                             const std::vector<int>& widths, int threads) const {
        constexpr std::size_t kPiece = 64;
        const std::size_t pieces = (index.size() + kPiece - 1) / kPiece;
        const std::size_t count = widths.size();
        std::vector<Score> partial(pieces * count);
        std::vector<std::unique_ptr<Engine>> engines(static_cast<std::size_t>(threads));
        const std::vector<std::int64_t> equal(count == 0 ? 0 : pieces, 1);
        run_queue(equal, threads, [&](std::size_t worker, std::size_t piece) {
            std::unique_ptr<Engine>& engine = engines[worker];
            if (!engine) {
                engine.reset(level_.create_engine(shapes_));
                engine->begin(theta, widths.data(), static_cast<int>(count));
            }
            const std::size_t first = piece * kPiece;
            const Batch batch{index.data() + first, static_cast<std::int64_t>(std::min(kPiece, index.size() - first))};
            slimfl::evaluate(shapes_, *engine, data, batch, partial.data() + piece * count, static_cast<int>(count));
        });
        std::vector<Score> total(count);
        for (std::size_t i = 0; i < partial.size(); ++i) {
            total[i % count].correct += partial[i].correct;
            total[i % count].loss += partial[i].loss;
        }
        return total;
    }

    Shapes shapes_;
    const Level& level_;
};

std::vector<std::string> simd_levels() {
    std::vector<std::string> names;
    for (const Level& level : supported_levels()) {
        names.emplace_back(level.name);
    }
    return names;
}

double checked_fma_peak(int threads, double seconds) {
    require(threads >= 1 && threads <= 1024, "threads must be between 1 and 1024");
    require(seconds > 0 && seconds <= 60, "seconds must be positive and at most 60");
    const nb::gil_scoped_release unlocked;
    return fma_peak(threads, seconds);
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Native training engine for slimmable networks.";
    module.def("simd_levels", &simd_levels, "Processor levels compiled in and supported here, best first.");
    module.def("fma_peak", &checked_fma_peak, "threads"_a = 1, "seconds"_a = 0.2,
               "Measured multiply-add limit in GFLOPS of so many threads running at once.");

    nb::class_<Network>(module, "Network", "A slimmable network's sizes; computes gradients, trains and evaluates.")
        .def(nb::init<int, int, int, const Channels&, int, const std::vector<Channels>&, const std::string&>(),
             "in_channels"_a, "height"_a, "width"_a, "channels"_a, "classes"_a, "active"_a, "simd"_a = "auto")
        .def_prop_ro("parameter_count", &Network::parameter_count, "Length of the flat parameter vector.")
        .def_prop_ro("simd", &Network::simd, "The processor level in use.")
        .def("textbook_flops", &Network::textbook_flops, "algorithm"_a = "sustrain", "width_index"_a = nb::none(),
             "Operations an image of training, every width computed on its own.")
        .def("shared_flops", &Network::shared_flops, "algorithm"_a = "sustrain", "width_index"_a = nb::none(),
             "Operations an image of training when what widths have in common is computed once.")
        .def("executed_flops", &Network::executed_flops, "algorithm"_a = "sustrain", "width_index"_a = nb::none(),
             "Operations an image of training really executed, with table look-ups in the last layer.")
        .def("gradient", &Network::gradient, "theta"_a, "images"_a, "labels"_a, "index"_a, "mean"_a, "std"_a,
             "algorithm"_a = "sustrain", "weights"_a = nb::none(), "visits"_a = nb::none(),
             "width_index"_a = nb::none(),
             "Gradient and mean losses of one batch, all widths accumulated; for tests.")
        .def("train_cohort", &Network::train_cohort, "theta"_a, "devices"_a, "images"_a, "labels"_a, nb::kw_only(),
             "mean"_a, "std"_a, "algorithm"_a = "sustrain", "mode"_a = "accumulate", "weights"_a = nb::none(),
             "width_index"_a = nb::none(), "optimiser"_a = "adam", "betas"_a = std::array<double, 2>{0.9, 0.999},
             "eps"_a = 1e-8, "weight_decay"_a = 0.0, "momentum"_a = 0.0, "nesterov"_a = false, "threads"_a = 1,
             "Trains devices (order, batch_offsets, m, v, step, learning_rates, visits) from the same theta, or from "
             "a list of one for each; updates m and v in place and returns a list of (theta, step, mean losses).")
        .def("evaluate", &Network::evaluate, "theta"_a, "images"_a, "labels"_a, "mean"_a, "std"_a, "width_index"_a,
             "threads"_a = 1, "index"_a = nb::none(),
             "(correct answers, summed loss) of a width, or a list of them for a list of widths.");
}

}  // namespace slimfl
