/** The gates of a forge, in order. */
export const GATES = [
  'normalization',
  'shape',
  'static',
  'schemas',
  'build',
  'tests',
  'output-schema',
  'resources',
  'policy',
  'judge',
  'registration',
] as const;
export type Gate = (typeof GATES)[number];
