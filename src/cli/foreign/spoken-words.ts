/** Words of sentences in English, German and Chinese, and their meanings. Loaded only with the sentences. */
import { ownValue } from '../../base/values.js';

/** Subject of a question. */
export type Topic = 'adapters' | 'full' | 'training' | 'comparison' | 'hardware' | 'size';

const splitWords = (text: string): readonly string[] => text.split(' ');

const TOPICS: Readonly<Record<Topic, readonly string[]>> = {
  adapters: splitWords(
    'lora qlora finetune fine-tune finetuned fine-tuned finetuning fine-tuning finetunes fine-tunes',
  ),
  full: splitWords('full fully'),
  training: splitWords('train trained training pretrain pretrained pretraining'),
  comparison: splitWords('compare compared compares vs vs. versus difference between'),
  hardware: splitWords(
    'vram ram memory mem run runs running fit fits fitting gpu gpus card cards serve serving host deploy load hardware ' +
      'fast speed slow machine tps throughput latency tokens context ctx window batch concurrency users quant quants ' +
      'quantization quantisation',
  ),
  size: splitWords(
    'big large size sizes param params parameter parameters weight weights layer layers flops kv cache long bigger ' +
      'larger smaller biggest smallest',
  ),
};

const TOPIC_OF: ReadonlyMap<string, Topic> = new Map(
  (Object.keys(TOPICS) as Topic[]).flatMap((topic) => TOPICS[topic].map((word) => [word, topic])),
);

/** The topic that a word names. */
export const topicOf = (word: string): Topic | undefined => TOPIC_OF.get(word.toLowerCase());

const BEGINNINGS: ReadonlySet<string> = new Set(
  splitWords(
    "how what whats what's which where can could will would does do is are should i show tell find count estimate serve run " +
      'train finetune fine-tune pretrain host deploy design build lora qlora fit profile plan compare export please best max ' +
      'maximum min minimum longest highest fastest optimal recommended',
  ),
);

/** Whether a sentence can begin with a word. */
export const isBeginning = (word: string): boolean =>
  BEGINNINGS.has(word.toLowerCase()) || topicOf(word) !== undefined;

const FILLERS: ReadonlySet<string> = new Set(
  splitWords(
    "a an the my me i we you it its do does is are be to of on onto in at for from with using and or by how what what's " +
      'whats which where can could will would should shall much many need needs needed take takes require requires required ' +
      'have has there get gets single one model models llm llms network show tell find count estimate enough possible design ' +
      'build max maximum min minimum longest highest fastest optimal recommended good best new small this that than use used please plan into per second',
  ),
);

/** Whether a word adds nothing to a sentence. */
export const isFiller = (word: string): boolean => FILLERS.has(word.toLowerCase());

const rows = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    text.split(',').flatMap((row) => {
      const [meaning = '', ...words] = row.trim().split(' ');
      return words.map((word) => [word, meaning]);
    }),
  );

/** An English word, and the German ones with its meaning. */
const GERMAN = rows(
  'how wie, what was, which welche welcher welches, much viel viele, need brauche brauchen braucht benötigt benötige nötig, ' +
    'run läuft laufen lauft laeuft, fit passt passen, can kann können, will wird, i ich man, ' +
    'a ein eine einer einem einen der die das den dem es, my mein meine meiner meinem, on auf, with mit, for für fuer, ' +
    'and und, or oder, of von vom, in im, has hat haben, get schafft schaffen macht bekommt, is ist sind, fast schnell, big groß gross, ' +
    'memory speicher grafikspeicher arbeitsspeicher, gpu grafikkarte karte, gpus grafikkarten karten, ' +
    'compare vergleiche vergleich vergleichen, difference unterschied, between zwischen, train trainiere trainieren, ' +
    'finetune feintunen finetunen, users nutzer benutzer, context kontext, model modell, models modelle, enough genug reicht, ' +
    'per pro, second sekunde',
);

/** An English word, and the Chinese ones with its meaning. */
const CHINESE = rows(
  'vram 显存 顯存, memory 内存, need 需要 要 占用 占, much 多少 多 几, can 能 可以 能否, run 跑 运行 推理, a 吗 呢 么 一 它 至少, ' +
    'parameters 参数量 参数 參數, compare 对比 比较, difference 区别, and 和 与 跟, finetune 微调, full 全参数 全量, ' +
    'train 训练 预训练, deploy 部署, on 在 上 到, with 用, of 的, is 是, big 多大 大小, fast 多快 速度, gpu 显卡, which 哪些 哪个, ' +
    'model 模型, what 什么, how 怎么 如何, context 上下文, users 用户',
);

/** Words between a number and what it counts. */
const CLASSIFIER = /^[张块个台]$/;

const IS_CHINESE = /[\u3400-\u9fff]/;
const RUNS = /[\u3400-\u9fff]+|[^\u3400-\u9fff]+/g;

/** Chinese words, the longest first, and any other character. */
const CHINESE_WORDS = new RegExp(
  `${Object.keys(CHINESE)
    .sort((a, b) => b.length - a.length)
    .join('|')}|.`,
  'gu',
);

/** The words of a sentence, with German and Chinese ones in English. Chinese has no spaces between words. */
export const inEnglish = (words: readonly string[]): string[] =>
  words
    .flatMap((word) => (IS_CHINESE.test(word) ? (word.match(RUNS) ?? []) : [word]))
    .flatMap((run) => (IS_CHINESE.test(run) ? (run.match(CHINESE_WORDS) ?? []) : [run]))
    .filter((word) => !CLASSIFIER.test(word))
    .map((word) => ownValue(GERMAN, word.toLowerCase()) ?? ownValue(CHINESE, word) ?? word);
