// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/parameters.hpp>

namespace heed {

/// Weights by name, from a GGUF file, or from one or several safetensors files.
class WeightFile {
  // First, since the functions below deduce their results from it.
  template <class Visit>
  decltype(auto) visit(std::string_view tensor, const Visit& visit) const {
    const auto* gguf = std::get_if<Gguf>(&files_);
    return gguf != nullptr ? visit(*gguf) : visit(file_of(tensor));
  }

 public:
  explicit WeightFile(Safetensors file) : name_(file.name()), files_(Files{std::move(file)}) {}
  explicit WeightFile(Gguf file) : name_(file.name()), files_(std::move(file)) {}
  /// Files that hold a model together; `name` appears in error messages. Throws FileError for a
  /// tensor that is in two files.
  WeightFile(std::vector<Safetensors> files, std::string name);

  /// The file's name in error messages; that of the index where there are several.
  const std::string& name() const { return name_; }
  /// The names of all weights, valid as long as this object.
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for_each_entry([&](const auto& entry) { all.push_back(entry.name); });
    return all;
  }
  bool contains(std::string_view name) const {
    if (const auto* gguf = std::get_if<Gguf>(&files_)) return gguf->contains(name);
    const Safetensors* file = find(name);
    return file != nullptr && file->contains(name);
  }
  /// The shape of a tensor, valid as long as this object.
  std::span<const Index> shape(std::string_view name) const {
    return visit(name, [&](const auto& file) { return file.entry(name).shape(); });
  }
  /// The file's name for the type of a tensor's weights.
  std::string_view type(std::string_view name) const {
    return visit(name, [&](const auto& file) { return file.entry(name).type_name(); });
  }
  /// Whether `tensor` reads weights of that type as T.
  template <class T>
  bool is_readable(std::string_view name) const {
    return visit(name,
                 [&](const auto& file) { return file.entry(name).template is_readable_as<T>(); });
  }
  /// The size of all weights in bytes.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for_each_entry([&](const auto& entry) { sum += entry.end - entry.begin; });
    return sum;
  }
  /// The weights as the file stores them: row-major, at any alignment.
  std::span<const std::byte> stored(std::string_view name) const {
    return visit(name, [&](const auto& file) { return file.bytes(name); });
  }
  /// The weights as T, dequantized if they are quantized.
  template <class T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    return visit(name, [&](const auto& file) { return file.template tensor<T, Rank>(name); });
  }

  /// Throws FileError for a weight that is NaN or infinite, with its tensor and byte. Loading a
  /// model does not check this, since it would read every weight twice. Weights of types that heed
  /// does not read are skipped.
  void check_finite() const {
    for_each_entry([&](const auto& entry) { check_finite(entry); });
  }

 private:
  using Files = std::vector<Safetensors>;
  struct Place {
    std::string_view name;  // of a tensor
    std::size_t file;
  };

  /// The file that has a tensor if any has it; null if none of several has it.
  const Safetensors* find(std::string_view tensor) const {
    const Files& files = *std::get_if<Files>(&files_);
    if (files.size() == 1) return &files.front();
    const Place* place = by_name_.find(places_, tensor);
    return place == nullptr ? nullptr : &files[place->file];
  }
  const Safetensors& file_of(std::string_view tensor) const {
    const Safetensors* file = find(tensor);
    if (file == nullptr) throw_file_error(name_, ": no tensor ", quote(tensor));
    return *file;
  }

  template <class Visit>
  void for_each_entry(const Visit& visit_entry) const {
    const auto visit_entries = [&](const auto& file) {
      for (const auto& entry : file.entries()) visit_entry(entry);
    };
    if (const auto* gguf = std::get_if<Gguf>(&files_)) return visit_entries(*gguf);
    for (const auto& file : *std::get_if<Files>(&files_)) visit_entries(file);
  }

  void check_finite(std::string_view name, std::size_t byte, double weight) const {
    if (std::isfinite(weight)) return;
    const auto& file = visit(name, [](const auto& x) -> const std::string& { return x.name(); });
    throw_file_error(file, ": byte ", byte, ": tensor ", quote(name), ": a weight is ", weight);
  }
  void check_finite(const GgufTensor& tensor) const {
    if (!is_dequantizable(*tensor.type)) return;
    const Index block = tensor.type->block_bytes, length = tensor.type->block_length;
    if (tensor.type->name == "F64") {
      return check_finite(tensor.name, tensor.begin, ElementType::f64);
    }
    const Index size = tensor.size();
    float part[1024];
    for (Index first = 0; first < size; first += 1024) {
      const auto count = static_cast<std::size_t>(std::min<Index>(1024, size - first));
      std::get<Gguf>(files_).read(tensor.name, first, std::span(part, count));
      for (std::size_t i = 0; i < count; ++i) {
        const Index at = (first + static_cast<Index>(i)) / length * block;
        check_finite(tensor.name, tensor.begin + static_cast<std::size_t>(at),
                     static_cast<double>(part[i]));
      }
    }
  }
  void check_finite(const SafetensorsEntry& entry) const {
    if (is_readable_as<double>(entry.type)) check_finite(entry.name, entry.begin, entry.type);
  }
  /// A tensor of elements that begins at byte `begin` of the file.
  void check_finite(std::string_view name, std::size_t begin, ElementType type) const {
    const auto bytes = stored(name);
    for (std::size_t at = 0; at < bytes.size(); at += width_of(type)) {
      check_finite(name, begin + at, read_element<double>(type, bytes.data() + at));
    }
  }

  std::string name_;
  std::variant<Files, Gguf> files_;
  std::vector<Place> places_;  // of several files
  detail::NameIndex<&Place::name> by_name_;
};

inline WeightFile::WeightFile(std::vector<Safetensors> files, std::string name)
    : name_(std::move(name)), files_(std::move(files)) {
  const Files& all = *std::get_if<Files>(&files_);
  if (all.size() == 1) return;
  places_.reserve(names().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& entry : all[i].entries()) places_.push_back({entry.name, i});
  }
  by_name_ = detail::NameIndex<&Place::name>(places_);
  if (const Place* twice = by_name_.twice(places_)) {
    const auto [first, second] =
        std::minmax(by_name_.find(places_, twice->name)->file, twice->file);
    throw_file_error(name_, ": tensor ", quote(twice->name), " is in two files, ",
                     quote(all[first].name()), " and ", quote(all[second].name()));
  }
}

/// The name of a layer in heed and in a published model; `*` is the number of the block. The last
/// part, `weight` or `bias`, is the same in both.
struct WeightName {
  std::string_view ours, theirs;
  bool transposed = false;  // their matrices are (inputs, outputs)
  bool outside = false;     // of the larger model alone: without its prefix
};

/// The names of an architecture's weights.
struct WeightNames {
  std::span<const WeightName> layers;
  /// Names in a file that heed ignores; `*` is a number here too.
  std::span<const std::string_view> left_out;
  /// A prefix that the model's names may have in a file, where it is part of a larger model. If one
  /// name of the file begins with it, all names of `layers` must, but for those outside.
  std::string_view prefix;
};

namespace detail {

inline constexpr WeightName bert_layers[] = {
    {"embedding", "embeddings.word_embeddings"},
    {"positions", "embeddings.position_embeddings"},
    {"segments", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"blocks.*.attention.query", "encoder.layer.*.attention.self.query"},
    {"blocks.*.attention.key", "encoder.layer.*.attention.self.key"},
    {"blocks.*.attention.value", "encoder.layer.*.attention.self.value"},
    {"blocks.*.attention.out", "encoder.layer.*.attention.output.dense"},
    {"blocks.*.attention_norm", "encoder.layer.*.attention.output.LayerNorm"},
    {"blocks.*.feed_forward.up", "encoder.layer.*.intermediate.dense"},
    {"blocks.*.feed_forward.down", "encoder.layer.*.output.dense"},
    {"blocks.*.feed_forward_norm", "encoder.layer.*.output.LayerNorm"},
};
inline constexpr std::string_view bert_left_out[] = {
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.bias",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
    "cls.predictions.transform.LayerNorm.gamma",
    "cls.predictions.transform.LayerNorm.beta",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
};

inline constexpr WeightName gpt2_layers[] = {
    {"embedding", "wte"},
    {"positions", "wpe"},
    {"blocks.*.attention_norm", "h.*.ln_1"},
    {"blocks.*.attention.query_key_value", "h.*.attn.c_attn", true},
    {"blocks.*.attention.out", "h.*.attn.c_proj", true},
    {"blocks.*.feed_forward_norm", "h.*.ln_2"},
    {"blocks.*.feed_forward.up", "h.*.mlp.c_fc", true},
    {"blocks.*.feed_forward.down", "h.*.mlp.c_proj", true},
    {"norm", "ln_f"},
    {"head", "lm_head", false, true},
};
/// Masks as tensors.
inline constexpr std::string_view gpt2_left_out[] = {"h.*.attn.bias", "h.*.attn.masked_bias"};

inline constexpr WeightName llama_layers[] = {
    {"embedding", "embed_tokens"},
    {"blocks.*.attention_norm", "layers.*.input_layernorm"},
    {"blocks.*.attention.query", "layers.*.self_attn.q_proj"},
    {"blocks.*.attention.key", "layers.*.self_attn.k_proj"},
    {"blocks.*.attention.value", "layers.*.self_attn.v_proj"},
    {"blocks.*.attention.query_norm", "layers.*.self_attn.q_norm"},
    {"blocks.*.attention.key_norm", "layers.*.self_attn.k_norm"},
    {"blocks.*.attention.out", "layers.*.self_attn.o_proj"},
    {"blocks.*.feed_forward_norm", "layers.*.post_attention_layernorm"},
    {"blocks.*.feed_forward.gate", "layers.*.mlp.gate_proj"},
    {"blocks.*.feed_forward.up", "layers.*.mlp.up_proj"},
    {"blocks.*.feed_forward.down", "layers.*.mlp.down_proj"},
    {"norm", "norm"},
    {"head", "lm_head", false, true},
};
inline constexpr std::string_view llama_left_out[] = {"layers.*.self_attn.rotary_emb.inv_freq"};

inline constexpr WeightName gguf_llama_layers[] = {
    {"embedding", "token_embd"},
    {"blocks.*.attention_norm", "blk.*.attn_norm"},
    {"blocks.*.attention.query", "blk.*.attn_q"},
    {"blocks.*.attention.key", "blk.*.attn_k"},
    {"blocks.*.attention.value", "blk.*.attn_v"},
    {"blocks.*.attention.query_norm", "blk.*.attn_q_norm"},
    {"blocks.*.attention.key_norm", "blk.*.attn_k_norm"},
    {"blocks.*.attention.out", "blk.*.attn_output"},
    {"blocks.*.feed_forward_norm", "blk.*.ffn_norm"},
    {"blocks.*.feed_forward.gate", "blk.*.ffn_gate"},
    {"blocks.*.feed_forward.up", "blk.*.ffn_up"},
    {"blocks.*.feed_forward.down", "blk.*.ffn_down"},
    {"norm", "output_norm"},
    {"head", "output"},
};
/// Of all blocks, and read with the options.
inline constexpr std::string_view gguf_llama_left_out[] = {"rope_freqs.weight"};

/// A name whose first number between dots is replaced by `*`, and that number.
struct NumberedName {
  std::string pattern, number;
};
inline NumberedName numbered(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    std::size_t end = dot + 1;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == dot + 1 || end == name.size() || name[end] != '.') continue;
    return {std::string(name.substr(0, dot + 1)) + "*" + std::string(name.substr(end)),
            std::string(name.substr(dot + 1, end - dot - 1))};
  }
  return {std::string(name), ""};
}

/// Finds the weights of a model in a file and collects all differences.
class WeightMatch {
 public:
  WeightMatch(const WeightFile& file, const WeightNames& names) : file_(file), names_(names) {
    for (const auto& name : file.names()) {
      if (!names.prefix.empty() && name.starts_with(names.prefix)) prefix_ = names.prefix;
    }
  }

  /// Takes the head of a model with a tied one for the embedding, if the file has only that:
  /// safetensors' save_model stores shared weights once, under the first of their names.
  void let_head_stand_in() {
    const std::string head = name_of("head.weight").name;
    if (file_.contains(head) && !file_.contains(name_of("embedding.weight").name)) {
      embedding_ = head;
    }
  }
  /// Whether the file's head, of a model whose head is to be tied, is the embedding, or stands in
  /// for it. As in transformers 5, another one is the model's own.
  bool ties_head() {
    const auto is_head = [](const WeightName& layer) { return layer.ours == "head"; };
    if (std::none_of(names_.layers.begin(), names_.layers.end(), is_head)) return true;
    let_head_stand_in();
    const std::string head = name_of("head.weight").name, table = name_of("embedding.weight").name;
    if (!file_.contains(head) || table == head) return true;
    const auto a = file_.stored(head), b = file_.stored(table);
    if (file_.type(head) != file_.type(table) ||
        !std::equal(a.begin(), a.end(), b.begin(), b.end())) {
      return false;
    }
    used_.insert(head);
    return true;
  }

  struct Found {
    std::string name;
    bool transposed = false;
  };
  /// The file's name for a parameter of a heed model.
  Found name_of(std::string_view ours) const {
    if (ours == "embedding.weight" && !embedding_.empty()) return {embedding_};
    const auto [pattern, number] = numbered(ours);
    const std::size_t dot = pattern.rfind('.');
    for (const WeightName& layer : names_.layers) {
      if (dot == pattern.npos || layer.ours != std::string_view(pattern).substr(0, dot)) continue;
      std::string theirs(layer.theirs);
      if (const auto star = theirs.find('*'); star != theirs.npos) theirs.replace(star, 1, number);
      if (!layer.outside) theirs.insert(0, prefix_);
      const std::string part = pattern.substr(dot);
      std::string found = theirs + part;
      // The first BERTs were converted from TensorFlow, with its names for the parts of norms.
      if (theirs.ends_with("LayerNorm") && !file_.contains(found)) {
        const std::string older = theirs + (part == ".weight" ? ".gamma" : ".beta");
        if (file_.contains(older)) found = older;
      }
      return {found, layer.transposed};
    }
    throw_invalid_argument("load_weights: the table has no name for ", quote(ours));
  }

  /// Expects a weight with a shape, readable as T.
  template <class T>
  void expect(std::string_view ours, std::vector<Index> shape) {
    const Found found = name_of(ours);
    if (!file_.contains(found.name)) return problems_.add("no ", quote(found.name));
    used_.insert(found.name);
    if (found.transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
    const auto is = file_.shape(found.name);
    if (!std::equal(is.begin(), is.end(), shape.begin(), shape.end())) {
      problems_.add(quote(found.name), " is ", is, ", expected ", std::span<const Index>(shape));
    } else if (!file_.is_readable<T>(found.name)) {
      problems_.add(quote(found.name), " is of type ", file_.type(found.name),
                    ", which is not read");
    }
  }
  /// Throws FileError with all differences, if there are any; the first 50 by name.
  void finish() {
    for (const auto& name : file_.names()) {
      if (!used_.contains(name) && !left_out(name))
        problems_.add(quote(name), " is not the model's");
    }
    const Index count = problems_.count();
    if (count == 0) return;
    throw_file_error(file_.name(), ": ", count, count == 1 ? " weight" : " weights",
                     " of the model and the file differ: ", problems_.text());
  }

 private:
  bool left_out(std::string_view name) const {
    if (name.starts_with(prefix_)) name.remove_prefix(prefix_.size());
    const auto pattern = numbered(name).pattern;
    return std::find(names_.left_out.begin(), names_.left_out.end(), pattern) !=
           names_.left_out.end();
  }

  const WeightFile& file_;
  WeightNames names_;
  std::string prefix_;
  std::string embedding_;  // the head's name where it stands in
  std::set<std::string, std::less<>> used_;
  ProblemList problems_{"; "};
};

/// Throws FileError for sizes that the file cannot have: a block with more weights than all tensors
/// of the file together. The prototype is therefore never larger than the file's tensors.
template <class Options>
void check_block_size(const WeightFile& file, const Options& options) {
  const BlockOptions& block = options.block;
  if (block.model_dim < 1 || block.heads < 1) {
    throw_file_error(file.name(), ": a model of dimension ", block.model_dim, " with ", block.heads,
                     " heads");
  }
  const auto dim = static_cast<double>(block.model_dim);
  const auto heads = static_cast<double>(block.heads);
  const double head = block.head_dim > 0 ? static_cast<double>(block.head_dim) : dim / heads;
  const double inner = heads * head;
  const double key_inner = block.kv_heads > 0 ? static_cast<double>(block.kv_heads) * head : inner;
  const double matrices = block.gated ? 3 : 2;
  const double hidden = block.hidden_dim > 0 ? static_cast<double>(block.hidden_dim) : 4 * dim;
  const double weights = dim * (2 * inner + 2 * key_inner + matrices * hidden);
  double most = 0;
  for (const auto& name : file.names()) {
    double size = 1;
    for (const Index extent : file.shape(name)) size *= static_cast<double>(extent);
    most += size;
  }
  most = std::min(most, 2 * static_cast<double>(file.bytes()));  // no type we read is denser
  if (weights <= most) return;
  throw_file_error(file.name(), ": a block of dimension ", block.model_dim, " cannot be in ",
                   file.bytes(), " bytes");
}

/// The number of rows of a table in the model; the prototype's tables have one.
template <class Options>
Index rows_of(std::string_view name, const Options& options, Index rows) {
  if (name == "embedding.weight" || name == "head.weight") return options.vocab_size;
  if (name == "positions.weight") return options.max_length;
  if constexpr (requires { options.segments; }) {
    if (name == "segments.weight") return options.segments;
  }
  return rows;
}

/// A model with one block and tables of one row, for the shapes of its parameters.
template <class Model, class Options>
Model prototype_of(const WeightFile& file, Options options) {
  if (options.layers < 1 || options.layers > static_cast<Index>(file.names().size())) {
    throw_file_error(file.name(), ": ", options.layers, " blocks, the file has ",
                     file.names().size(), " tensors");
  }
  check_block_size(file, options);
  options.vocab_size = options.max_length = options.layers = 1;
  if constexpr (requires { options.segments; }) {
    options.segments = std::min<Index>(options.segments, 1);
  }
  Random random = WeightDraws::skipped(Random(0));
  return made_of_file(file.name(), [&] { return Model(options, random); });
}

/// Which parameters of a model are loaded: without the matrices, those of layers that multiply with
/// their rows are checked and left empty.
enum class LoadedPart : std::uint8_t { all, without_matrices };

/// Reads every parameter that is_left(name, rank) is false of.
template <class Model, class Left>
void read_parameters(Model& model, const WeightFile& file, const WeightMatch& match,
                     const Left& is_left) {
  for_each_parameter(
      [&](std::string_view name, auto& parameter) {
        using Parameter = std::remove_reference_t<decltype(parameter)>;
        if (is_left(name, Parameter::rank())) return;
        const auto found = match.name_of(name);
        auto weights = file.tensor<typename Parameter::value_type, Parameter::rank()>(found.name);
        if constexpr (Parameter::rank() == 2) {
          if (found.transposed) {
            weights = Parameter::copy_of(std::as_const(weights).view().transpose());
          }
        }
        parameter = std::move(weights);
      },
      model);
}

/// See load_weights.
template <class Model, class Options>
Model load_part(const WeightFile& file, const WeightNames& names, Options options,
                LoadedPart part) {
  WeightMatch match(file, names);
  if constexpr (requires { options.tied_head; }) {
    options.tied_head = options.tied_head && match.ties_head();
  }
  auto model = prototype_of<Model>(file, options);
  const auto is_left = [&](std::string_view name, std::size_t rank) {
    return part == LoadedPart::without_matrices && rank == 2 && name != "embedding.weight";
  };
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        std::vector<Index> shape(parameter.extents().begin(), parameter.extents().end());
        shape[0] = rows_of(name, options, shape[0]);
        constexpr std::string_view first = "blocks.0.";
        using Weight = typename std::remove_cvref_t<decltype(parameter)>::value_type;
        if (!name.starts_with(first)) return match.template expect<Weight>(name, shape);
        for (Index i = 0; i < options.layers; ++i) {
          match.template expect<Weight>(message("blocks.", i, ".", name.substr(first.size())),
                                        shape);
        }
      },
      model);
  match.finish();
  for_each_parameter([&](std::string_view, auto& parameter) { parameter = {}; }, model);
  model.blocks.resize(static_cast<std::size_t>(options.layers), model.blocks.front());
  Random random(1);  // with the streams of the first, the dropouts of all blocks would be one
  for (auto& block : model.blocks) {
    for_each_stream(block, [&](std::uint32_t& stream) { stream = random.bits(); });
  }
  model.options = options;
  read_parameters(model, file, match, is_left);
  return model;
}

}  // namespace detail

inline constexpr WeightNames bert_names{detail::bert_layers, detail::bert_left_out, "bert."};
inline constexpr WeightNames gpt2_names{detail::gpt2_layers, detail::gpt2_left_out, "transformer."};
inline constexpr WeightNames llama_names{detail::llama_layers, detail::llama_left_out, "model."};
inline constexpr WeightNames gguf_llama_names{detail::gguf_llama_layers,
                                              detail::gguf_llama_left_out, ""};

/// Builds a model and loads its weights from a file with published names. Throws FileError with a
/// list of weights that are missing, unknown, of another shape, or of a type that heed does not
/// read. Never allocates more than the file's own tensors take as floats, whatever the options say.
template <class Model, class Options>
Model load_weights(const WeightFile& file, const WeightNames& names, const Options& options) {
  return detail::load_part<Model>(file, names, options, detail::LoadedPart::all);
}

}  // namespace heed
