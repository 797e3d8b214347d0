// The algorithms of "A Light Touch for Heavily Constrained SGD" as the paper describes them, written for speed: the yardstick of the benchmarks.
//
//   light          Algorithm 4 with the automatic minibatching of Section 5.2 and the aggregation of Section 5.1
//   full           Algorithm 1 with the step size eta_w / sqrt(t) and a minibatch
//   unconstrained  the same loop with no constraints at all
//
// The objective is the mean of max(0, 1 - <w, x_i>), the constraints are w[lower_j] - w[upper_j] <= 0, the domain is a box. Everything in
// an iteration is evaluated at the same w. paper_cpp.py builds and drives it; one JSON line a checkpoint goes to standard output and the
// iterates, one after the other, to the file `iterates`. Reading and writing are outside the clock.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#ifndef WIDTH
#error "compile with -DWIDTH=<nonzeros kept for each example>"
#endif

using std::int32_t;
using std::int64_t;
using std::uint64_t;

// ---------------------------------------------------------------------------------------------------------------------- memory, files, options

struct Free {
    void operator()(void *memory) const { std::free(memory); }
};

// Numbers that start at a cache line.
template <class T> class Array {
  public:
    Array() = default;
    explicit Array(size_t size, T value = T()) : size_(size) {
        memory_.reset(static_cast<T *>(std::aligned_alloc(64, (std::max<size_t>(size, 1) * sizeof(T) + 63) / 64 * 64)));
        if (!memory_) throw std::bad_alloc();
        std::fill_n(memory_.get(), size, value);
    }
    T &operator[](size_t i) { return memory_.get()[i]; }
    const T &operator[](size_t i) const { return memory_.get()[i]; }
    T *data() { return memory_.get(); }
    const T *data() const { return memory_.get(); }
    size_t size() const { return size_; }

  private:
    std::unique_ptr<T, Free> memory_;
    size_t size_ = 0;
};

template <class T> Array<T> read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error("cannot open " + path);
    Array<T> content(static_cast<size_t>(file.tellg()) / sizeof(T));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(content.data()), static_cast<std::streamsize>(content.size() * sizeof(T)));
    if (!file) throw std::runtime_error("cannot read " + path);
    return content;
}

class Options {
  public:
    Options(int count, char **arguments) {
        for (int i = 1; i < count; ++i) {
            const char *equals = std::strchr(arguments[i], '=');
            if (!equals) throw std::runtime_error(std::string("expected name=value, got ") + arguments[i]);
            values_[std::string(arguments[i], static_cast<size_t>(equals - arguments[i]))] = equals + 1;
        }
    }
    const std::string &text(const std::string &name) const {
        auto found = values_.find(name);
        if (found == values_.end()) throw std::runtime_error("missing option " + name);
        return found->second;
    }
    double number(const std::string &name) const { return std::stod(text(name)); }
    int64_t whole(const std::string &name) const { return std::stoll(text(name)); }

  private:
    std::map<std::string, std::string> values_;
};

// ---------------------------------------------------------------------------------------------------------------------------- random numbers

// xoshiro256++ of Blackman and Vigna, seeded by splitmix64.
class Random {
  public:
    explicit Random(uint64_t seed) {
        for (uint64_t &word : state_) {
            seed += 0x9e3779b97f4a7c15ULL;
            uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            word = z ^ (z >> 31);
        }
    }
    uint64_t bits() {
        const uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
        const uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotate(state_[3], 45);
        return result;
    }
    double unit() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
    int32_t below(int32_t bound) { return static_cast<int32_t>(((bits() >> 32) * static_cast<uint64_t>(bound)) >> 32); }

  private:
    static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    uint64_t state_[4];
};

// -------------------------------------------------------------------------------------------------------------------------------- the problem

// The examples in the order in which they are visited, so that the loop reads memory from front to back.
struct Examples {
    Array<double> values;
    Array<int32_t> vertices;
    int64_t count;

    explicit Examples(const Options &options) {
        const auto order = read_file<int32_t>(options.text("order"));
        const auto values_read = read_file<double>(options.text("values"));
        const auto vertices_read = read_file<int32_t>(options.text("vertices"));
        count = static_cast<int64_t>(order.size());
        values = Array<double>(order.size() * WIDTH);
        vertices = Array<int32_t>(order.size() * WIDTH);
        for (size_t i = 0; i < order.size(); ++i) {
            std::copy_n(values_read.data() + size_t(order[i]) * WIDTH, WIDTH, values.data() + i * WIDTH);
            std::copy_n(vertices_read.data() + size_t(order[i]) * WIDTH, WIDTH, vertices.data() + i * WIDTH);
        }
    }
    const double *value(int64_t i) const { return values.data() + i * WIDTH; }
    const int32_t *vertex(int64_t i) const { return vertices.data() + i * WIDTH; }
};

struct Worst {
    double value;
    int32_t row;
};

// Eight numbers at once; the compiler maps them onto whatever registers the machine has.
typedef double Vector __attribute__((vector_size(64)));
typedef int64_t Lanes __attribute__((vector_size(64)));

inline Vector load(const double *from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}
inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }
inline Vector all(double x) { return Vector{x, x, x, x, x, x, x, x}; }

// w[lower_j] - w[upper_j] <= 0, in groups of consecutive rows.
//
// Rows along one feature of a 2^D lattice follow a pattern: `stride` consecutive lower vertices, then their upper neighbours `stride` further
// on, then again. A group that follows it is read as vectors without looking at the index arrays; any other group is read through them.
class Constraints {
  public:
    Constraints(const Options &options, int32_t group_size)
        : lower(read_file<int32_t>(options.text("lower"))), upper(read_file<int32_t>(options.text("upper"))), group_size_(group_size) {
        const bool blocks = options.text("layout") == "blocks";
        for (int32_t first = 0; first < rows(); first += group_size) {
            const int32_t count = std::min(rows(), first + group_size) - first;
            groups_.push_back({first, count, lower[first], blocks && follows_pattern(first, count) ? upper[first] - lower[first] : 0});
        }
    }
    int32_t rows() const { return static_cast<int32_t>(lower.size()); }
    int32_t groups() const { return static_cast<int32_t>(groups_.size()); }
    int32_t members(int32_t group) const { return std::min(group_size_, rows() - group * group_size_); }
    double row_value(int32_t row, const double *w) const { return w[lower[row]] - w[upper[row]]; }

    double worst_value(int32_t index, const double *w) const {
        const Group &group = groups_[index];
        switch (group.stride) {
        case 0: return worst_of_rows(group, w).value;
        case 1: return worst_value_of_block<1>(group, w);
        case 2: return worst_value_of_block<2>(group, w);
        case 4: return worst_value_of_block<4>(group, w);
        default: return worst_value_of_block<8>(group, w);
        }
    }
    // The first row of the group that has the largest value.
    Worst worst(int32_t index, const double *w) const {
        const Group &group = groups_[index];
        switch (group.stride) {
        case 0: return worst_of_rows(group, w);
        case 1: return worst_of_block<1>(group, w);
        case 2: return worst_of_block<2>(group, w);
        case 4: return worst_of_block<4>(group, w);
        default: return worst_of_block<8>(group, w);
        }
    }

    Array<int32_t> lower, upper;

  private:
    struct Group {
        int32_t first, rows, vertex, stride; // stride 0: read through the index arrays
    };

    bool follows_pattern(int32_t first, int32_t count) const {
        const int32_t stride = upper[first] - lower[first];
        if (stride < 1 || (stride & (stride - 1)) || count % 16) return false;
        for (int32_t i = 0; i < count; ++i)
            if (lower[first + i] != lower[first] + i + (i & -stride) || upper[first + i] != lower[first + i] + stride) return false;
        return true;
    }
    // Values of rows i .. i + 7 of a group whose first lower vertex is w[0]; i is a multiple of 8 and Stride 8 stands for all from 8 on.
    template <int Stride> static Vector values(const double *w, int32_t stride, int32_t i) {
        if constexpr (Stride == 8) {
            const double *low = w + i + (i & -stride);
            return load(low) - load(low + stride);
        } else {
            constexpr int64_t s = Stride;
            constexpr Lanes low = {0, 1 + (1 & -s), 2 + (2 & -s), 3 + (3 & -s), 4 + (4 & -s), 5 + (5 & -s), 6 + (6 & -s), 7 + (7 & -s)};
            constexpr Lanes high = {s, 1 + (1 & -s) + s, 2 + (2 & -s) + s, 3 + (3 & -s) + s, 4 + (4 & -s) + s, 5 + (5 & -s) + s, 6 + (6 & -s) + s, 7 + (7 & -s) + s};
            const Vector first = load(w + 2 * i), second = load(w + 2 * i + 8);
            return __builtin_shuffle(first, second, low) - __builtin_shuffle(first, second, high);
        }
    }
    template <int Stride> static double worst_value_of_block(const Group &group, const double *w) {
        Vector even = all(-1e300), odd = even;
        for (int32_t i = 0; i < group.rows; i += 16) {
            even = larger(even, values<Stride>(w + group.vertex, group.stride, i));
            odd = larger(odd, values<Stride>(w + group.vertex, group.stride, i + 8));
        }
        even = larger(even, odd);
        double worst = even[0];
        for (int lane = 1; lane < 8; ++lane) worst = std::max(worst, even[lane]);
        return worst;
    }
    template <int Stride> static Worst worst_of_block(const Group &group, const double *w) {
        Vector best = all(-1e300);
        Lanes where = {};
        for (int64_t i = 0; i < group.rows; i += 8) {
            const Vector value = values<Stride>(w + group.vertex, group.stride, static_cast<int32_t>(i));
            where = value > best ? Lanes{i, i, i, i, i, i, i, i} : where;
            best = larger(best, value);
        }
        int first = 0;
        for (int lane = 1; lane < 8; ++lane)
            if (best[lane] > best[first] || (best[lane] == best[first] && where[lane] < where[first])) first = lane;
        return {best[first], group.first + static_cast<int32_t>(where[first]) + first};
    }
    Worst worst_of_rows(const Group &group, const double *w) const {
        Worst worst{-1e300, group.first};
        for (int32_t row = group.first; row < group.first + group.rows; ++row) {
            const double value = row_value(row, w);
            if (value > worst.value) worst = {value, row};
        }
        return worst;
    }

    int32_t group_size_;
    std::vector<Group> groups_;
};

// ------------------------------------------------------------------------------------------------------------------------- the w side: a step

struct Box {
    double lower, upper;
};

// w, and the step that collects its parts: every part is added first, and only then is the result put back into the box.
class Iterate {
  public:
    Iterate(int64_t dimension, Box box) : w_(dimension, std::clamp(0.0, box.lower, box.upper)), box_(box) {}
    const double *w() const { return w_.data(); }
    int64_t dimension() const { return static_cast<int64_t>(w_.size()); }

    double product(const double *value, const int32_t *vertex) const {
        double sum = 0;
        for (int k = 0; k < WIDTH; ++k) sum += w_[vertex[k]] * value[k];
        return sum;
    }
    // w += scale * x_i; true where a coordinate has left the box.
    bool add_example(const double *value, const int32_t *vertex, double scale) {
        bool outside = false;
        for (int k = 0; k < WIDTH; ++k) outside |= add(vertex[k], scale * value[k]);
        return outside;
    }
    bool push_apart(int32_t lower, int32_t upper, double distance) {
        const bool lower_outside = add(lower, -distance);
        return add(upper, distance) | lower_outside;
    }
    void clip_example(const int32_t *vertex) {
        for (int k = 0; k < WIDTH; ++k) clip(vertex[k]);
    }
    void clip(int32_t j) { w_[j] = std::min(box_.upper, std::max(box_.lower, w_[j])); }

  private:
    bool add(int32_t j, double change) {
        const double moved = w_[j] + change;
        w_[j] = moved;
        return (moved > box_.upper) | (moved < box_.lower);
    }
    Array<double> w_;
    Box box_;
};

// A minibatch of consecutive examples and which of their hinges are active at w.
class Batch {
  public:
    Batch(const Examples &examples, int32_t size) : examples_(examples), size_(size), active_(size), example_(size) {}

    void look(const Iterate &iterate) {
        for (int32_t q = 0; q < size_; ++q) {
            example_[q] = next_;
            next_ = next_ + 1 == examples_.count ? 0 : next_ + 1;
            active_[q] = iterate.product(examples_.value(example_[q]), examples_.vertex(example_[q])) < 1;
        }
    }
    bool step(Iterate &iterate, double step_size) const {
        bool outside = false;
        for (int32_t q = 0; q < size_; ++q)
            if (active_[q]) outside |= iterate.add_example(examples_.value(example_[q]), examples_.vertex(example_[q]), step_size / size_);
        return outside;
    }
    void clip(Iterate &iterate) const {
        for (int32_t q = 0; q < size_; ++q)
            if (active_[q]) iterate.clip_example(examples_.vertex(example_[q]));
    }
    // Sample variance (the trace of the covariance) of the two loss subgradients; `zeros` has the length of w and is left zero.
    double variance_of_two(double *zeros) const {
        const double *x = examples_.value(example_[0]), *y = examples_.value(example_[1]);
        double squares = (active_[0] ? square_norm(x) : 0) + (active_[1] ? square_norm(y) : 0);
        if (active_[0] && active_[1]) squares -= 2 * overlap(zeros, x, examples_.vertex(example_[0]), y, examples_.vertex(example_[1]));
        return 0.5 * squares;
    }

  private:
    static double square_norm(const double *x) {
        double sum = 0;
        for (int k = 0; k < WIDTH; ++k) sum += x[k] * x[k];
        return sum;
    }
    static double overlap(double *zeros, const double *x, const int32_t *at, const double *y, const int32_t *y_at) {
        for (int k = 0; k < WIDTH; ++k) zeros[at[k]] += x[k];
        double sum = 0;
        for (int k = 0; k < WIDTH; ++k) sum += zeros[y_at[k]] * y[k];
        for (int k = 0; k < WIDTH; ++k) zeros[at[k]] = 0;
        return sum;
    }

    const Examples &examples_;
    int32_t size_;
    int64_t next_ = 0;
    Array<bool> active_;
    Array<int64_t> example_;
};

// --------------------------------------------------------------------------------------------------------------- the p side: knows nothing of w

// The distribution p over the (aggregated) constraints and the remembered violations mu.
//
// ln p_j grows by slope_j = eta_p gamma mu_j in every iteration, and is kept exactly as its value when mu_j last changed. The weights
// exp(ln p_j - reference), which the draws need, are multiplied by exp(slope_j) in every iteration, one pass over contiguous memory, and are
// taken afresh from the logarithms before a weight that is too small for a double could have grown to matter.
class Distribution {
  public:
    Distribution(int32_t count, double rate, const Array<double> &violations)
        : mu(count), count_(count), rate_(rate), log_weight_(count, 0.0), since_(count, 0), slope_(count), weight_(padded(count), 0.0), factor_(padded(count), 1.0),
          permutation_(count), block_(block_size(count)), block_sum_(padded(count) / block_, 0.0) {
        for (int32_t j = 0; j < count; ++j) {
            permutation_[j] = j;
            remember(j, violations[j]);
        }
        renew(0);
    }

    int32_t draw(Random &random) const {
        double left = random.unit() * total_;
        int32_t block = 0, last = static_cast<int32_t>(block_sum_.size()) - 1;
        while (block < last && left >= block_sum_[block]) left -= block_sum_[block++];
        int32_t j = block * block_, end = std::min(count_, j + block_) - 1;
        while (j < end && left >= weight_[j]) left -= weight_[j++];
        return j;
    }
    // The first k entries of `permutation` become a uniform draw without replacement.
    const int32_t *draw_without_replacement(int32_t k, Random &random) {
        for (int32_t q = 0; q < k; ++q) std::swap(permutation_[q], permutation_[q + random.below(count_ - q)]);
        return permutation_.data();
    }

    // Lines 13-16 of Algorithm 4 at the end of iteration t, for the k constraints `sampled` and their violations.
    void learn(int64_t t, int32_t k, const int32_t *sampled, const double *violations) {
        bool too_large = false;
        for (int32_t q = 0; q < k; ++q) {
            const int32_t j = sampled[q];
            const double surprise = violations[q] - mu[j];
            if (surprise == 0) continue;
            log_weight_[j] += static_cast<double>(t - since_[j]) * slope_[j] + rate_ * count_ / k * surprise;
            since_[j] = t;
            weight_[j] = std::exp(std::min(LARGEST, log_weight_[j] - reference_));
            too_large |= log_weight_[j] - reference_ > LARGEST;
            factor_[j] = 1;
        }
        multiply();
        for (int32_t q = 0; q < k; ++q)
            if (violations[q] != mu[sampled[q]]) remember(sampled[q], violations[q]);
        growth_ += largest_slope_;
        if (too_large || growth_ > 40 || ++passes_ > 65536 || total_ > 1e200 || total_ < 1e-100) renew(t);
    }

    Array<double> mu;

  private:
    static constexpr double LARGEST = 450;
    static int32_t block_size(int32_t count) { return count > 4096 ? 256 : 8; }
    static int32_t padded(int32_t count) { return (count + block_size(count) - 1) / block_size(count) * block_size(count); }

    void remember(int32_t j, double violation) {
        mu[j] = violation;
        slope_[j] = rate_ * violation;
        factor_[j] = std::exp(slope_[j]);
        largest_slope_ = std::max(largest_slope_, slope_[j]);
    }
    void multiply() {
        if (block_ == 8)
            multiply_blocks<8>();
        else
            multiply_blocks<256>();
    }
    template <int32_t Block> void multiply_blocks() {
        double total = 0;
        for (size_t block = 0; block < block_sum_.size(); ++block) {
            double *weight = weight_.data() + block * Block, sum = 0;
            const double *factor = factor_.data() + block * Block;
            for (int32_t i = 0; i < Block; ++i) sum += weight[i] *= factor[i];
            block_sum_[block] = sum;
            total += sum;
        }
        total_ = total;
    }
    // Weights from logarithms, relative to the largest.
    void renew(int64_t t) {
        double largest = -1e300, slope = 0;
        for (int32_t j = 0; j < count_; ++j) {
            log_weight_[j] += static_cast<double>(t - since_[j]) * slope_[j];
            since_[j] = t;
            largest = std::max(largest, log_weight_[j]);
            slope = std::max(slope, slope_[j]);
        }
        for (int32_t j = 0; j < count_; ++j) weight_[j] = std::exp(std::max(-700.0, log_weight_[j] - largest));
        reference_ = largest;
        largest_slope_ = slope;
        growth_ = 0;
        passes_ = 0;
        sum_blocks();
    }
    void sum_blocks() {
        total_ = 0;
        for (size_t block = 0; block < block_sum_.size(); ++block) {
            block_sum_[block] = 0;
            for (int32_t i = 0; i < block_; ++i) block_sum_[block] += weight_[block * block_ + i];
            total_ += block_sum_[block];
        }
    }

    int32_t count_;
    double rate_;
    Array<double> log_weight_;
    Array<int64_t> since_;
    Array<double> slope_, weight_, factor_;
    Array<int32_t> permutation_;
    int32_t block_;
    Array<double> block_sum_;
    double total_ = 0, reference_ = 0, largest_slope_ = 0, growth_ = 0;
    int64_t passes_ = 0;
};

// ------------------------------------------------------------------------------------------------------------------------------ the algorithms

class Algorithm {
  public:
    virtual ~Algorithm() = default;
    virtual void advance(int64_t from, int64_t to) = 0; // iterations from + 1 .. to
    virtual const double *w() const = 0;
    int64_t checks = 0, total_k_g = 0, total_k_p = 0;
};

double step_size(double eta, int64_t t) { return eta / std::sqrt(static_cast<double>(t)); }

class Unconstrained final : public Algorithm {
  public:
    Unconstrained(const Options &options, const Examples &examples, Box box)
        : iterate_(options.whole("dimension"), box), batch_(examples, static_cast<int32_t>(options.whole("batch"))), eta_(options.number("eta_w")) {}
    void advance(int64_t from, int64_t to) override {
        for (int64_t t = from + 1; t <= to; ++t) {
            batch_.look(iterate_);
            if (batch_.step(iterate_, step_size(eta_, t))) batch_.clip(iterate_);
        }
    }
    const double *w() const override { return iterate_.w(); }

  private:
    Iterate iterate_;
    Batch batch_;
    double eta_;
};

class FullTouch final : public Algorithm {
  public:
    FullTouch(const Options &options, const Examples &examples, Box box)
        : constraints_(options, 256), iterate_(options.whole("dimension"), box), batch_(examples, static_cast<int32_t>(options.whole("batch"))),
          eta_(options.number("eta_w")), gamma_(options.number("gamma")) {}
    void advance(int64_t from, int64_t to) override {
        for (int64_t t = from + 1; t <= to; ++t) {
            const double step = step_size(eta_, t);
            batch_.look(iterate_);
            const Worst worst = most_violated();
            bool outside = batch_.step(iterate_, step);
            if (worst.value > 0) outside |= iterate_.push_apart(constraints_.lower[worst.row], constraints_.upper[worst.row], step * gamma_);
            if (outside) clip(worst);
        }
        checks += constraints_.rows() * (to - from);
    }
    const double *w() const override { return iterate_.w(); }

  private:
    Worst most_violated() const {
        int32_t worst_group = 0;
        double worst = -1e300;
        for (int32_t group = 0; group < constraints_.groups(); ++group) {
            const double value = constraints_.worst_value(group, iterate_.w());
            if (value > worst) worst = value, worst_group = group;
        }
        return constraints_.worst(worst_group, iterate_.w());
    }
    void clip(const Worst &worst) {
        batch_.clip(iterate_);
        if (worst.value <= 0) return;
        iterate_.clip(constraints_.lower[worst.row]);
        iterate_.clip(constraints_.upper[worst.row]);
    }

    Constraints constraints_;
    Iterate iterate_;
    Batch batch_;
    double eta_, gamma_;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Section 5.2: the sizes k_g and k_p that go with k_f = 2. The averages share one normaliser, which cancels.
class Minibatching {
  public:
    Minibatching(const Options &options, int32_t group_size, int32_t groups)
        : most_(groups), memory_(options.number("memory")), cost_f_(options.number("cost_example")), cost_g_(2.0 * group_size), cost_p_(2.0 * group_size) {}

    int32_t k_g = 2, k_p = 1;

    void learn_variances(double f, double g, double p) {
        variance_f_ = f + memory_ * variance_f_;
        variance_g_ = g + memory_ * variance_g_;
        variance_p_ = p + memory_ * variance_p_;
    }
    void learn_costs(int64_t t, double f, double g, double p) { // the mean over past iterations of the time of one sample
        const double weight = 1.0 / static_cast<double>(t);
        cost_f_ = t == 1 ? f : cost_f_ + weight * (f - cost_f_);
        cost_g_ = t == 1 ? g : cost_g_ + weight * (g - cost_g_);
        cost_p_ = t == 1 ? p : cost_p_ + weight * (p - cost_p_);
    }
    void choose(double eta_w, double eta_p) {
        const double f = std::max(1e-300, eta_w * variance_f_ / cost_f_);
        k_g = rounded(2 * std::sqrt(eta_w * variance_g_ / cost_g_ / f), 2);
        k_p = rounded(2 * std::sqrt(eta_p * variance_p_ / cost_p_ / f), 1);
    }

  private:
    int32_t rounded(double size, int32_t least) const {
        return std::max(least, static_cast<int32_t>(std::min<double>(most_, std::floor(size + 0.5))));
    }
    int32_t most_;
    double memory_, cost_f_, cost_g_, cost_p_;
    double variance_f_ = 0, variance_g_ = 0, variance_p_ = 0;
};

// Single: groups of one constraint. Timed: minibatch sizes from measured costs, as in the paper; otherwise from counted ones.
template <bool Single, bool Timed> class LightTouch final : public Algorithm {
  public:
    LightTouch(const Options &options, const Examples &examples, Box box)
        : constraints_(options, static_cast<int32_t>(options.whole("group"))), iterate_(options.whole("dimension"), box), batch_(examples, 2),
          eta_w_(options.number("eta_w")), eta_p_(options.number("eta_p")), gamma_(options.number("gamma")), random_(options.whole("seed")),
          p_(constraints_.groups(), eta_p_ * gamma_, violations_at_start()), sizes_(options, static_cast<int32_t>(options.whole("group")), constraints_.groups()),
          zeros_(iterate_.dimension(), 0.0), drawn_(std::max(2, constraints_.groups())), violations_(constraints_.groups()) {}

    void advance(int64_t from, int64_t to) override {
        for (int64_t t = from + 1; t <= to; ++t) {
            const double step = step_size(eta_w_, t);
            if (t > 1) sizes_.choose(step, eta_p_);
            total_k_g += sizes_.k_g;
            total_k_p += sizes_.k_p;
            const double start = clock();
            batch_.look(iterate_);
            const double seen_f = clock();
            draw_constraints();
            const double seen_g = clock();
            const int32_t *set = look_at_set();
            const double seen_p = clock();
            sizes_.learn_variances(batch_.variance_of_two(zeros_.data()), variance_of_drawn(), variance_of_set(set));
            if (Timed) sizes_.learn_costs(t, (seen_f - start) / 2, (seen_g - seen_f) / sizes_.k_g, (seen_p - seen_g) / sizes_.k_p);
            move(step);
            p_.learn(t, sizes_.k_p, set, violations_.data());
        }
    }
    const double *w() const override { return iterate_.w(); }

  private:
    static double clock() { return Timed ? now() : 0; }

    double value(int32_t group) const {
        return Single ? constraints_.row_value(group, iterate_.w()) : constraints_.worst_value(group, iterate_.w());
    }
    Array<double> violations_at_start() const {
        Array<double> violations(constraints_.groups());
        for (int32_t group = 0; group < constraints_.groups(); ++group) violations[group] = std::max(0.0, value(group));
        return violations;
    }
    void draw_constraints() {
        violated_ = 0;
        for (int32_t q = 0; q < sizes_.k_g; ++q) {
            const int32_t group = p_.draw(random_);
            const Worst worst = Single ? Worst{value(group), group} : constraints_.worst(group, iterate_.w());
            checks += constraints_.members(group);
            if (worst.value > 0) drawn_[violated_++] = worst.row;
        }
    }
    const int32_t *look_at_set() {
        const int32_t *set = p_.draw_without_replacement(sizes_.k_p, random_);
        for (int32_t q = 0; q < sizes_.k_p; ++q) {
            violations_[q] = std::max(0.0, value(set[q]));
            checks += constraints_.members(set[q]);
        }
        return set;
    }
    // Each violated draw contributes gamma (e_lower - e_upper), the others zero.
    double variance_of_drawn() {
        double of_sum = 0;
        for (int32_t q = 0; q < violated_; ++q) {
            zeros_[constraints_.lower[drawn_[q]]] += 1;
            zeros_[constraints_.upper[drawn_[q]]] -= 1;
        }
        for (int32_t q = 0; q < violated_; ++q) {
            of_sum += take_square(constraints_.lower[drawn_[q]]);
            of_sum += take_square(constraints_.upper[drawn_[q]]);
        }
        return gamma_ * gamma_ * (2.0 * violated_ - of_sum / sizes_.k_g) / (sizes_.k_g - 1);
    }
    double take_square(int32_t j) {
        const double value = zeros_[j];
        zeros_[j] = 0;
        return value * value;
    }
    double variance_of_set(const int32_t *set) const {
        double squares = 0;
        for (int32_t q = 0; q < sizes_.k_p; ++q) squares += (p_.mu[set[q]] - violations_[q]) * (p_.mu[set[q]] - violations_[q]);
        const double scale = gamma_ * constraints_.groups();
        return scale * scale * squares / sizes_.k_p;
    }
    void move(double step) {
        bool outside = batch_.step(iterate_, step);
        for (int32_t q = 0; q < violated_; ++q)
            outside |= iterate_.push_apart(constraints_.lower[drawn_[q]], constraints_.upper[drawn_[q]], step * gamma_ / sizes_.k_g);
        if (!outside) return;
        batch_.clip(iterate_);
        for (int32_t q = 0; q < violated_; ++q) {
            iterate_.clip(constraints_.lower[drawn_[q]]);
            iterate_.clip(constraints_.upper[drawn_[q]]);
        }
    }

    Constraints constraints_;
    Iterate iterate_;
    Batch batch_;
    double eta_w_, eta_p_, gamma_;
    Random random_;
    Distribution p_;
    Minibatching sizes_;
    Array<double> zeros_;
    Array<int32_t> drawn_;
    Array<double> violations_;
    int32_t violated_ = 0;
};

// ----------------------------------------------------------------------------------------------------------------------------------- the program

std::unique_ptr<Algorithm> make(const Options &options, const Examples &examples) {
    const Box box{options.number("box_lower"), options.number("box_upper")};
    const std::string &variant = options.text("variant");
    if (variant == "unconstrained") return std::make_unique<Unconstrained>(options, examples, box);
    if (variant == "full") return std::make_unique<FullTouch>(options, examples, box);
    if (variant != "light") throw std::runtime_error("variant must be light, full or unconstrained, got " + variant);
    const bool single = options.whole("group") == 1, timed = options.text("costs") == "timed";
    if (single && timed) return std::make_unique<LightTouch<true, true>>(options, examples, box);
    if (single) return std::make_unique<LightTouch<true, false>>(options, examples, box);
    if (timed) return std::make_unique<LightTouch<false, true>>(options, examples, box);
    return std::make_unique<LightTouch<false, false>>(options, examples, box);
}

void run(const Options &options) {
    const Examples examples(options);
    const auto algorithm = make(options, examples);
    const auto checkpoints = read_file<int64_t>(options.text("checkpoints"));
    std::ofstream iterates(options.text("iterates"), std::ios::binary);
    double seconds = 0;
    int64_t done = 0;
    for (size_t i = 0; i < checkpoints.size(); ++i) {
        const double start = now();
        algorithm->advance(done, checkpoints[i]);
        seconds += now() - start;
        done = checkpoints[i];
        iterates.write(reinterpret_cast<const char *>(algorithm->w()), static_cast<std::streamsize>(options.whole("dimension") * sizeof(double)));
        std::printf("{\"iteration\": %lld, \"seconds\": %.9f, \"checks\": %lld, \"total_k_g\": %lld, \"total_k_p\": %lld}\n", static_cast<long long>(done), seconds,
                    static_cast<long long>(algorithm->checks), static_cast<long long>(algorithm->total_k_g), static_cast<long long>(algorithm->total_k_p));
        std::fflush(stdout);
    }
    if (!iterates.flush()) throw std::runtime_error("cannot write " + options.text("iterates"));
}

int main(int count, char **arguments) {
    try {
        run(Options(count, arguments));
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
