/** Words that mean the same to the embedder of tests. */
const CONCEPTS: readonly (readonly string[])[] = [
  ['weather', 'forecast', 'umbrella', 'rain', 'temperature'],
  ['invoice', 'bill', 'payment', 'owe'],
  ['flight', 'plane', 'airport', 'travel'],
  ['photo', 'picture', 'image'],
  ['recipe', 'cook', 'dinner', 'meal'],
];

/** A vector by the concepts of a text, with at least as many dimensions as there are concepts. The same for the same text. */
export function conceptVector(text: string, dimensions = CONCEPTS.length + 1): Float32Array {
  const words = text.toLowerCase().split(/[^a-z]+/);
  const vector = new Float32Array(dimensions);
  for (const [concept, members] of CONCEPTS.entries())
    vector[concept] = words.filter((word) => members.includes(word)).length;
  // Texts about nothing of this have a vector too.
  vector[dimensions - 1] = 0.1;
  return vector;
}
