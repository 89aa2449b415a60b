// How unevenly a router spreads tokens over ranks: as it is after some training, before training has moved it, and of
// tokens that are all alike.
//
// At the start, of a model whose weights are drawn as Megatron-LM draws them (0.02; matrices that write to the residual
// stream 0.02 / sqrt(2 layers)): attention writes nearly one vector for all tokens, the mean of what came before them,
// a feed-forward half writes to each token its own. What tokens have in common grows by attention's gain from layer to
// layer, and narrow experts without a shared one hold little against it: behind a few layers all tokens look alike to a
// router and choose the same experts (tests/accuracy/ROUTER_START.md). Not modelled: training, models that start from a
// checkpoint, other initial values (some draw embeddings 50 times as wide), a bias against uneven loads.

#include <math.h>

#include "sim/model/model.h"

enum { PER_CENT = 100 };

// The mean of the largest of 1, 2, 4 .. 256 draws from a normal distribution.
static double largest_of(int draws) {
    static const double means[] = {0, 0.564, 1.029, 1.424, 1.766, 2.070, 2.344, 2.594, 2.823};
    enum { LAST = sizeof means / sizeof means[0] - 1 };
    const double at = fmin(log2(draws), LAST);
    const int below = (int)fmin(at, LAST - 1);
    return means[below] + (at - below) * (means[below + 1] - means[below]);
}

// By how much the fullest of equal parts is over the mean, where single experts spread so.
static double over_mean(const Experts *experts, int parts, double spread) {
    return spread * largest_of(parts) / sqrt(fmax(1, (double)experts->count / parts));
}

// How far an expert's tokens are from the mean: on 64 ranks, each with 4 of 256 experts, the busiest of a layer had
// 1.212 times the mean after 18 steps of a router with a bias against it, 1.338 before, and 1.013 where balance was
// forced (marin-community/marin issue 7668, on 64 GB200). DeepSeek's auxiliary loss leaves the busiest of 64 experts
// 0.52 to 0.56 over the mean (arXiv 2408.15664), which would be 0.23.
static const double learned_spread = 0.181;

int experts_learned_imbalance(const Experts *experts, int parts) {
    return (int)(PER_CENT * over_mean(experts, parts, learned_spread) + 0.5);
}

static double choices(int of, int chosen) {
    double ways = chosen <= of;
    for (int i = 0; i < chosen && i < of; i++) {
        ways *= (double)(of - i) / (i + 1);
    }
    return ways;
}

enum { MAX_ALIKE = 32 };

// Ways in which two tokens can choose their experts, by how many each has chosen.
typedef struct Ways {
    double of[MAX_ALIKE + 1][MAX_ALIKE + 1];
} Ways;

// A part more, in which they choose most together at most.
static void add_part(Ways *ways, int active, int part, int most) {
    const Ways before = *ways;
    for (int i = 0; i <= active; i++) {
        for (int k = 0; k <= active; k++) {
            double sum = 0;
            for (int a = 0; a <= i && a <= most; a++) {
                for (int b = 0; b <= k && a + b <= most; b++) {
                    sum += before.of[i - a][k - b] * choices(part, a) * choices(part, b);
                }
            }
            ways->of[i][k] = sum;
        }
    }
}

static double most_at_most(const Experts *experts, int parts, int most) {
    const int active = experts->active;
    Ways ways = {.of[0][0] = 1};
    for (int part = 0; part < parts; part++) {
        add_part(&ways, active, experts->count / parts, most);
    }
    const double all = choices(experts->count, active);
    return ways.of[active][active] / (all * all);
}

int experts_alike_imbalance(const Experts *experts, int parts) {
    enum { KINDS = 2 };
    if (experts->active < 1 || experts->active > MAX_ALIKE || parts < 1 || parts > experts->count) {
        return 0;
    }
    double most = 0;
    for (int i = 0; i < KINDS * experts->active; i++) {
        most += 1 - most_at_most(experts, parts, i);
    }
    const double mean = (double)KINDS * experts->active / parts;
    return (int)(PER_CENT * (most / mean - 1) + 0.5);
}

static const double drawn_width = 0.02;  // of weights (init_method_std of Megatron-core's TransformerConfig)

// The mean square of silu of a normal variable of that width over the variable's own: 0.25 of narrow ones, 0.34 of 0.9
// (hidden 2,048), 0.42 of 1.7 (7,168), 0.5 of wide ones. gelu's is up to a fifth more.
static double activated_share(double width) {
    enum { STEPS = 200, REACH = 6 };
    double activated = 0, squares = 0;
    for (int i = 0; i < STEPS; i++) {
        const double z = -REACH + 2.0 * REACH / STEPS * (i + 0.5), square = z * z * exp(-z * z / 2);
        const double passed = 1 / (1 + exp(-width * z));
        activated += square * passed * passed;
        squares += square;
    }
    return activated / squares;
}

// Of what attention adds: alike though tokens are not (they see the same tokens before them), and apart though they are
// (positions, first tokens of a sequence): forwards of Qwen3-30B-A3B, 1,024 tokens (tests/accuracy/ROUTER_START.md).
static const double seen_alike = 0.02, seen_apart = 0.065;

// Variances of a token's residual: what all tokens have, and its own.
typedef struct Stream {
    double alike, own;
} Stream;

static double share_alike(const Stream *stream) {
    return stream->alike / (stream->alike + stream->own);
}

// Values come from a normed input, of latent attention from a normed latent.
static void attend(const ModelSpec *model, double out, Stream *stream) {
    const LatentAttention *latent = &model->latent;
    const bool is_latent = latent->kv_rank > 0;
    const double in = drawn_width * drawn_width * (is_latent ? latent->kv_rank : model->hidden);
    const double gain = out * model->heads * (is_latent ? latent->value : model->head_dim) * in;
    stream->alike += gain * fmax(share_alike(stream), seen_alike);
    stream->own += gain * seen_apart;
}

// Products of a gate and another are alike by the square of what their inputs are. A token's results are weighed by one
// over those that it visits each, times a sigmoid router's factor (SigmoidRouter), and add up as variances do.
static void feed(const ModelSpec *model, LayerKind kind, double out, Stream *stream) {
    const Experts *experts = &model->experts;
    const bool gated = model->mlp == MLP_GATED;
    const double in = drawn_width * drawn_width * model->hidden;
    const double square = activated_share(sqrt(in)) * in * (gated ? in : 1) * out;
    const double factor = experts->sigmoid.groups > 0 ? experts->sigmoid.factor : 1;
    const double width =
        kind == LAYER_DENSE ? model->ffn : experts->shared_ffn + experts->ffn * factor * factor / experts->active;
    const double share = share_alike(stream), alike = gated ? share * share : share;
    stream->alike += square * width * alike;
    stream->own += square * width * (1 - alike);
}

static double below(double z) {
    return 0.5 * erfc(-z * sqrt(0.5));
}

// What a normal variable exceeds with that probability.
static double exceeded_with(double share) {
    double low = -8, high = 8;
    for (int i = 0; i < 50; i++) {
        const double middle = (low + high) / 2;
        *(below(-middle) > share ? &low : &high) = middle;
    }
    return low;
}

// How far an expert's tokens are from the mean, where a part of the variance of scores is common to all tokens: an
// expert whose common part is c takes the tokens whose own part lifts them over the bar.
static double spread_of(double alike, double chosen) {
    enum { STEPS = 200, REACH = 6 };
    const double bar = exceeded_with(chosen), width = 2.0 * REACH / STEPS;
    double squares = 0, weights = 0;
    for (int i = 0; i < STEPS; i++) {
        const double c = -REACH + width * (i + 0.5), weight = exp(-c * c / 2);
        const double taken = below((sqrt(alike) * c - bar) / sqrt(1 - alike));
        squares += taken * taken * weight;
        weights += weight;
    }
    return sqrt(fmax(0, squares / weights / (chosen * chosen) - 1));
}

int experts_starting_imbalance(const ModelSpec *model, int parts) {
    const Experts *experts = &model->experts;
    const double out = drawn_width * drawn_width / (2 * model->layers);
    Stream stream = {.own = drawn_width * drawn_width};
    double over = 0;
    int routers = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        for (int layer = 0; layer < run.count; layer++) {
            attend(model, out, &stream);
            if (run.kind == LAYER_EXPERTS) {
                const double spread = spread_of(share_alike(&stream), (double)experts->active / experts->count);
                over += over_mean(experts, parts, spread);
                routers++;
            }
            feed(model, run.kind, out, &stream);
        }
    }
    return routers > 0 ? (int)(PER_CENT * over / routers + 0.5) : 0;
}
