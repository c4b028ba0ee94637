import { tokenize } from './tokenizer.ts';

/** The words of a query, and which of its parts contain them. */
export interface QueryWord {
  word: string;
  /** Less than 1 for words of a quotation. */
  weight: number;
  /** Indexes of parts. Part 0 is the whole query; the other ones are its clauses. */
  parts: number[];
}

export interface QueryParts {
  words: QueryWord[];
  /** 1 for a query without clauses. */
  count: number;
  /** The text of each part. */
  texts: string[];
}

const MAX_CHARACTERS = 2_048;
const MAX_WORDS = 64;
const MAX_CLAUSES = 8;
const MIN_CLAUSE_WORDS = 2;
/** A quotation is often the value of an argument and not a name of what the query asks for. */
const QUOTED_WEIGHT = 0.5;

/** Reads a query: its words, and its clauses, because a request for several tools has a clause for each. Takes linear time. */
export function partsOf(query: string): QueryParts {
  const whole = query.slice(0, MAX_CHARACTERS);
  const clauses = clausesOf(whole);
  const long = clauses.filter(({ words }) => words.size >= MIN_CLAUSE_WORDS).slice(0, MAX_CLAUSES);
  const isDivided = long.length > 1;
  const words = new Map<string, QueryWord>();
  for (const clause of clauses) {
    const part = isDivided ? long.indexOf(clause) + 1 : 0;
    for (const [word, weight] of clause.words) {
      const known = words.get(word);
      if (known === undefined && words.size >= MAX_WORDS) continue;
      const parts = [...(known?.parts ?? [0]), ...(part > 0 ? [part] : [])];
      words.set(word, { word, weight: Math.max(weight, known?.weight ?? 0), parts });
    }
  }
  const texts = [whole, ...(isDivided ? long.map(({ text }) => text) : [])];
  return { words: [...words.values()], count: texts.length, texts };
}

interface Clause {
  /** The words with their weights. */
  words: Map<string, number>;
  text: string;
}

/** The sentences of a text. A quotation belongs to the sentence around it. */
function clausesOf(text: string): Clause[] {
  let current: Clause = { words: new Map(), text: '' };
  const clauses = [current];
  for (const [index, piece] of text.split(/["\u201c\u201d\u201e]/).entries()) {
    const isQuoted = index % 2 === 1;
    const sentences = isQuoted ? [piece] : piece.split(/[.;?!]\s|[\u3002\uff1b\uff1f\uff01\n]/);
    for (const [position, sentence] of sentences.entries()) {
      if (position > 0) clauses.push((current = { words: new Map(), text: '' }));
      current.text += isQuoted ? `"${sentence}"` : sentence;
      for (const word of tokenize(sentence)) {
        current.words.set(word, Math.max(isQuoted ? QUOTED_WEIGHT : 1, current.words.get(word) ?? 0));
      }
    }
  }
  return clauses;
}
