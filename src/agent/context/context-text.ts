import { sha256 } from '../../lib/canonical.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { truncateAtLine } from '../history/tool-result-text.ts';

/** A file of the workspace or a memory value that the context of an agent names. */
export interface ContextPart {
  kind: 'File' | 'Memory';
  name: string;
  state: 'Included' | 'Missing' | 'Denied' | 'LeftOut';
  text: string;
}

/** What the model gets before the first message of a session. */
export interface AgentContext {
  /** Empty when nothing of the context can be read. */
  text: string;
  parts: readonly ContextPart[];
}

/** What a message reports of its context; the text stays with the model. */
export function contextEvent({ text, parts }: AgentContext): Extract<AgentEvent, { type: 'context' }> {
  const figures = parts.map(({ kind, name, state, text: { length: characters } }) => ({
    kind,
    name,
    state,
    characters,
  }));
  return { type: 'context', characters: text.length, parts: figures };
}

const MAX_PART_CHARACTERS = 8_000;
const MAX_CHARACTERS = 24_000;

const HEADER =
  '[The context of this agent: files of its workspace and values of its memory, as they are now. They are not a message of the user.]';

/**
 * The text of a context, in the order of the manifest. The same parts always give the same text, so that the prompt cache of a provider stays
 * valid until a part changes. The digest in the marks keeps a part from closing its own block. Pure.
 */
export function contextOf(read: readonly ContextPart[]): AgentContext {
  const parts = withinLimits(read);
  const included = parts.filter(({ state }) => state === 'Included');
  if (included.length === 0) return { text: '', parts };
  const blocks = included.map(({ kind, name, text }) => ({ title: `${kind.toLowerCase()} ${name}`, text }));
  const id = sha256(JSON.stringify(blocks)).slice(-16);
  const shown = blocks.map(({ title, text }) => `--- ${title} (${id})\n${text}`);
  return { text: [HEADER, ...shown, `--- end of the context (${id})`].join('\n\n'), parts };
}

function withinLimits(read: readonly ContextPart[]): ContextPart[] {
  let left = MAX_CHARACTERS;
  return read.map((part) => {
    if (part.state !== 'Included') return part;
    const limit = Math.min(MAX_PART_CHARACTERS, left);
    if (limit === 0) return { ...part, state: 'LeftOut', text: '' };
    left -= Math.min(part.text.length, limit);
    return { ...part, text: truncateAtLine(part.text, limit) };
  });
}
