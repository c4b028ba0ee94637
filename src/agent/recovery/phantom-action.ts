import type { ToolDescriptor } from '../../tools/contract.ts';

/** What an agent may claim to have done, and the tools that could have done it. */
interface Claim {
  verbs: readonly string[];
  objects: readonly string[];
  canBeDoneBy: (tool: ActingTool) => boolean;
}

type ActingTool = Pick<ToolDescriptor, 'name' | 'category'>;

const nameHas =
  (...parts: string[]) =>
  ({ name }: ActingTool): boolean =>
    parts.some((part) => name.includes(part));

const CLAIMS: readonly Claim[] = [
  {
    verbs: ['sent', 'posted', 'emailed', 'messaged', 'notified', 'forwarded'],
    objects: ['message', 'email', 'mail', 'notification', 'team', 'agent', 'channel'],
    canBeDoneBy: (tool) => tool.category === 'communication' || nameHas('send', 'message', 'mail', 'post')(tool),
  },
  {
    verbs: ['saved', 'written', 'wrote', 'created', 'updated', 'deleted', 'removed', 'renamed', 'moved', 'edited'],
    objects: ['file', 'files', 'folder', 'directory'],
    canBeDoneBy: (tool) => tool.category === 'file_system',
  },
  {
    verbs: ['saved', 'stored', 'remembered', 'recorded', 'updated'],
    objects: ['memory', 'note', 'notes', 'preference', 'preferences'],
    canBeDoneBy: (tool) => tool.category === 'memory' || nameHas('memory')(tool),
  },
  {
    verbs: ['ran', 'run', 'executed', 'called', 'invoked', 'used'],
    objects: ['tool', 'command', 'script', 'test', 'tests', 'query', 'program'],
    canBeDoneBy: () => true,
  },
  {
    verbs: ['forged', 'built', 'created', 'made'],
    objects: ['tool'],
    canBeDoneBy: ({ name }) => name === 'forge_tool',
  },
];

const STARTS: readonly (readonly string[])[] = [['i', 'have'], ["i've"], ['i', 'just'], ['i']];
/** Words between the subject and the verb, as in "I have now successfully saved". */
const FILLERS: ReadonlySet<string> = new Set(['now', 'just', 'also', 'successfully', 'then', 'been', 'have']);
/** Words of another time or another mood: such a sentence claims nothing about this message. */
const OTHER_TIMES: ReadonlySet<string> = new Set([
  'earlier',
  'previously',
  'before',
  'last',
  'if',
  'once',
  'would',
  'could',
  'not',
  'never',
  'unless',
  'until',
  'when',
  'after',
]);
/** How far the object may be from the verb. */
const MAX_OBJECT_DISTANCE = 8;
const MAX_CHARACTERS = 20_000;

/**
 * Whether an answer claims an action that only a tool could have done, although no tool that could do it was called: "I've saved the
 * file." English only; first person, past, and one of the agent's tools can do it. Quotations and code do not count. Pure.
 *
 * `tools` are those that the agent may call, `called` the names of those whose results the model sees.
 */
export function claimsPhantomAction(text: string, tools: readonly ActingTool[], called: ReadonlySet<string>): boolean {
  if (tools.length === 0 || text.length > MAX_CHARACTERS) return false;
  return sentencesOf(text).some((words) => claimIn(words, tools, called));
}

function claimIn(words: readonly string[], tools: readonly ActingTool[], called: ReadonlySet<string>): boolean {
  if (words.some((word) => OTHER_TIMES.has(word))) return false;
  const start = STARTS.find((beginning) => beginning.every((word, index) => words[index] === word));
  if (start === undefined) return false;
  let verb = start.length;
  while (FILLERS.has(words[verb] ?? '')) verb += 1;
  const isUndone = (canBeDoneBy: Claim['canBeDoneBy']): boolean => {
    const able = tools.filter(canBeDoneBy);
    return able.length > 0 && !able.some(({ name }) => called.has(name));
  };
  const after = words.slice(verb + 1, verb + 1 + MAX_OBJECT_DISTANCE);
  return CLAIMS.some(
    ({ verbs, objects, canBeDoneBy }) =>
      verbs.includes(words[verb] ?? '') && after.some((word) => objects.includes(word)) && isUndone(canBeDoneBy),
  );
}

/** The sentences outside of code, quotation marks and quoted lines, as lower-case words. */
function sentencesOf(text: string): string[][] {
  const sentences: string[][] = [];
  let isFenced = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isFenced = !isFenced;
    if (isFenced || line.startsWith('>') || line.startsWith('```')) continue;
    for (const sentence of withoutQuotes(line).split(/[.!?;:]/)) {
      const words = sentence
        .toLowerCase()
        .replaceAll('’', "'")
        .match(/[a-z']+/g);
      if (words !== null) sentences.push(words);
    }
  }
  return sentences;
}

const QUOTES: Readonly<Record<string, string>> = { '"': '"', '“': '”', '`': '`' };

function withoutQuotes(line: string): string {
  let kept = '';
  let closing: string | undefined;
  for (const character of line) {
    if (closing !== undefined) {
      if (character === closing) closing = undefined;
      continue;
    }
    closing = QUOTES[character];
    if (closing === undefined) kept += character;
  }
  return kept;
}
