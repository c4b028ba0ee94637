/** The part of a request that its complexity is computed from. */
export interface RoutedRequest {
  /** The system prompt of the Agent, without the guidelines that Temper adds. */
  system: string;
  /** The texts of the messages, the current one last. */
  messages: readonly string[];
  /** The number of tools that are offered. */
  tools: number;
}

export type Complexity = 'Simple' | 'Medium' | 'Complex';

/** Fewer points are simple. */
const MEDIUM_POINTS = 100;
/** As many points or more are complex. */
const COMPLEX_POINTS = 500;

const CHARACTERS_PER_POINT = 4;
const POINTS_PER_TOOL = 20;
const POINTS_PER_CODE_MARKER = 30;
const FREE_MESSAGES = 10;
const POINTS_PER_MESSAGE = 15;
const FREE_SYSTEM_CHARACTERS = 500;
const SYSTEM_CHARACTERS_PER_POINT = 10;

/** What code has and prose rarely has. Each counts once, in the current message. */
const CODE_MARKERS: readonly string[] = [
  '```',
  'fn ',
  'def ',
  'class ',
  'import ',
  'function ',
  'async ',
  'await ',
  'struct ',
  'impl ',
  'return ',
];

/** How complex a request is, in points. Pure; `docs/reference/models.md` has the table. */
export function complexityPoints({ system, messages, tools }: RoutedRequest): number {
  const characters = messages.reduce((sum, text) => sum + text.length, 0);
  const current = (messages.at(-1) ?? '').toLowerCase();
  const markers = CODE_MARKERS.filter((marker) => current.includes(marker)).length;
  return (
    Math.floor(characters / CHARACTERS_PER_POINT) +
    POINTS_PER_TOOL * tools +
    POINTS_PER_CODE_MARKER * markers +
    POINTS_PER_MESSAGE * Math.max(0, messages.length - FREE_MESSAGES) +
    Math.floor(Math.max(0, system.length - FREE_SYSTEM_CHARACTERS) / SYSTEM_CHARACTERS_PER_POINT)
  );
}

export function complexityOf(points: number): Complexity {
  if (points < MEDIUM_POINTS) return 'Simple';
  return points < COMPLEX_POINTS ? 'Medium' : 'Complex';
}
