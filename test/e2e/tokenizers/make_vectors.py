#!/usr/bin/env python3
"""Writes vectors/*.json: tiny tokenizers and the ids that the libraries they come
from give to awkward texts. Needs the PyPI packages tokenizers and sentencepiece.

    make_vectors.py
"""

import base64
import io
import json
import pathlib
import tempfile

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        trainers)

HERE = pathlib.Path(__file__).parent
LINES = (HERE.parent / "texts" / "ferry.txt").read_text().splitlines()
LINES += ["Überall café naïve Ångström", "зелёная вода, Σίσυφος", "漢字とかな カタカナ", "한국어 각", "int main() { return 0; }"]
LINES = [line for line in LINES if line.strip()]
TEXTS = ["", " ", "  ", "\n", "a", " a", "a ", "the ferry", "  The  FERRY  ", "a\n\nb\tc", "…and—then?!", "don't stop(now).",
         "café cafe\u0301 CAFÉ", "Å A\u030a \u212b", "q\u0323\u0307 q\u0307\u0323", "ﬁre ﬂag Ⅳ ①½²", "İstanbul ıI ǅ ſ ß",
         "ΣΊΣΥΦΟΣ ς", "зелёная ЙЁ", "漢字kanji混ぜ", "ｶﾞ ガ が か\u3099", "한국어 \u1112\u1161\u11ab", "各 \u3000各\u00a0x", "👍🏽 👩\u200d🚀🇩🇪",
         "שָׁלוֹם", "\u0644\u0627 \ufefb", "क्षि", "\u200bzero\u00adwidth\u0001", "##ing ▁under▁", "<s>x</s> <unk>[UNK]", "aaaaaaaaaaaaaaaa",
         "=" * 21, "x" * 101, "the theirs they thermal thé", "1234567 3.14 1e9", "\ufffd", "tab\tand\r\nline", "``quoted''", "<s>the ferry</s>", "a<s> b <s>c</s> </s>", "the Ferry THE FERRY the f", "12345 1²³4 ¼½ 9",
         " <s>  the fxX X  x", "§1 ¶«a»·¿ 粲粳", "!?!? (a) [b]{c}"]


# Characters of many kinds beside a word; texts that tokens of changed text are in.
BESIDE = ["_", "-", "²", "Ⅳ", "ⓐ", "🄰", "\u0301", "\u0903", "\u20dd", "\u200d", "\u00ad", "٣", "漢", "‿", "½", "ª", "\ue000", "!", "\u3000", "▁", "é"]
WORDS = [*TEXTS, *(f"{c}the{c}a the{c} {c}the" for c in BESIDE), "the the  the", "theferry ferrythe", "ferry the ferry", "ferrying ferry-ing",
         "STRASSE straße Straße GROẞ groß", "CAFÉ cafe\u0301s café", "½ 1⁄2 a½b", "ﬁsh FISH ﬁshy ﬁ fi", "İI İIx i\u0307i", "꙰ꙮ ꙮx xꙮ ꙮ", "Ω Ω ω",
         "\u1112\u1161\u11ab글 한글", "a▁b ▁ab ▁ a▁ ▁▁a", "x▁the▁x", "§ a§b", "quay q aq qa"]


def write(name, files, encode, texts=None):
    texts = texts or TEXTS
    vectors = {"files": files, "texts": texts, "ids": [encode(text) for text in texts]}
    (HERE / "vectors" / f"{name}.json").write_text(json.dumps(vectors, ensure_ascii=True, separators=(",", ":")) + "\n")


def piece_model(name, rules=None, **options):
    made = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
        if rules:
            for source, target in rules.items():
                points = [" ".join(f"{ord(c):X}" for c in text) for text in (source, target)]
                table.write("\t".join(points) + "\n")
            table.flush()
            options["normalization_rule_tsv"] = table.name
        else:
            options["normalization_rule_name"] = "identity"
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=made, vocab_size=420,
                                                 character_coverage=0.98, hard_vocab_limit=False, minloglevel=2, **options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    config = json.dumps({"add_bos_token": False, "add_eos_token": False})
    files = {"tokenizer.model": base64.b64encode(made.getvalue()).decode(), "tokenizer_config.json": config}
    write(name, files, processor.encode)
    return made.getvalue()


def charsmap_of(model):
    """The map inside of a piece model: field 2 of field 3."""
    def fields(data):
        at = 0
        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = varint()
            if tag & 7 == 2:
                size = varint()
                yield tag >> 3, data[at:at + size]
                at += size
            elif tag & 7 == 5:
                at += 4
            else:
                varint()
    spec = next(value for number, value in fields(model) if number == 3)
    return next(value for number, value in fields(spec) if number == 2)


def json_model(name, tokenizer, trainer, added=(), texts=None, lines=()):
    tokenizer.train_from_iterator([*LINES, *lines], trainer)
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    write(name, {"tokenizer.json": tokenizer.to_str()}, lambda text: tokenizer.encode(text).ids, texts)


def unigram(name, normalizer, pre_tokenizer, added=(), texts=None):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    special = ["<unk>", "<s>", "</s>"]
    json_model(name, tokenizer, trainers.UnigramTrainer(vocab_size=420, unk_token="<unk>", special_tokens=special,
                                                        show_progress=False), added, texts)


def word_piece(name, inside="##", added=(), texts=None, lines=(), **rules):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=inside))
    tokenizer.normalizer = normalizers.BertNormalizer(**rules)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=420, special_tokens=special, continuing_subword_prefix=inside,
                                        show_progress=False)
    json_model(name, tokenizer, trainer, added, texts, lines)


def byte_level(name, normalizer, pre_tokenizer=None, added=(), texts=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    json_model(name, tokenizer, trainers.BpeTrainer(vocab_size=320, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                    show_progress=False), added, texts)


def characters(name, added, first=(), texts=None):
    """Characters with byte fallback, and a normalizer that puts spaces."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([*first, normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    json_model(name, tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False), added, texts)


def main():
    rules = {"\t": " ", "\n": " ", "\r": " ", "\u3000": " ", "\u00a0": " ", "\u0001": "", "\u200b": "", "…": "...",
             "ﬁ": "fi", "ﬂ": "fl", "½": "1⁄2", "e\u0301": "é", "か\u3099": "が", "ｶﾞ": "ガ", "\u1112\u1161\u11ab": "한", "É": "é",
             "\u1112": "ㅎ", "A": "a"}
    mapped = piece_model("pieces-mapped", rules)
    piece_model("pieces-bytes", byte_fallback=True, remove_extra_whitespaces=False)
    piece_model("pieces-user", rules, user_defined_symbols=["fi", "the f", "\t"], add_dummy_prefix=False)
    piece_model("pieces-bpe", rules, model_type="bpe")
    precompiled = normalizers.Precompiled(charsmap_of(mapped))
    spaces = pre_tokenizers.Metaspace
    unigram("unigram-plain", None, spaces())
    unigram("unigram-split", precompiled, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces()]))
    unigram("unigram-steps", normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), precompiled,
        normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), " ")]), spaces())
    word_piece("words")
    word_piece("words-cased", lowercase=False)
    word_piece("words-accents", strip_accents=False)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        byte_level(f"bytes-{form.lower()}", getattr(normalizers, form)())
    # Looked for in what the normalizer makes of a text, or before that; some overlap.
    added = [AddedToken("<s>", normalized=True, special=True), AddedToken("</s>", normalized=True, special=True),
             AddedToken("the F", normalized=True), AddedToken("ferry", normalized=False), AddedToken("  ", normalized=True),
             AddedToken("X x", normalized=True, lstrip=True, rstrip=True)]
    characters("characters-added", added)
    byte_level("bytes-added", normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]), added=added)
    # Whole words, and tokens that the normalizer changes; some are pieces of the model, some are not.
    added = [AddedToken("the", single_word=True, normalized=False), AddedToken("§", special=True, normalized=False),
             AddedToken("ferry", single_word=True, normalized=True, lstrip=True), AddedToken("ing", single_word=True),
             AddedToken("ꙮ", single_word=True, normalized=True), AddedToken("Straße", normalized=True),
             AddedToken("CAFÉ", normalized=True, single_word=True), AddedToken("½", normalized=True, rstrip=True),
             AddedToken("ﬁsh", normalized=True), AddedToken("İI", normalized=True), AddedToken("Ω", normalized=True, special=True),
             AddedToken("한글", normalized=True), AddedToken("q", single_word=True, normalized=True), AddedToken("the ferry")]
    characters("characters-words", added, [normalizers.NFKC(), normalizers.Lowercase()], WORDS)
    byte_level("bytes-words", normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
               added=added, texts=WORDS, ignore_merges=True)
    unigram("unigram-words", precompiled, spaces(), added, WORDS)
    word_piece("words-added", added=added, texts=WORDS)
    # A real U+2581 among the pieces, with and without a mark for the inside of words.
    lines = ["▁the a▁b ▁▁ x▁y ▁ab"] * 20
    word_piece("words-under", texts=WORDS, lines=lines)
    word_piece("words-plain", inside="", texts=WORDS, lines=lines)
    byte_level("bytes-behind", None, pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    byte_level("bytes-singles", None, pre_tokenizers.Sequence([
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation("isolated")]))


if __name__ == "__main__":
    main()
