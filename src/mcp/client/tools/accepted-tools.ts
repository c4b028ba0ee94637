import type { ListedTool } from './listed-tool.ts';

/** How a tool of a server stands to what a user accepted. */
export type Standing = 'accepted' | 'new' | 'changed';

/**
 * Only a tool that is as a user accepted it can be used. Any other is quarantined: a description is text that a model obeys, and a server may
 * change it after a user has read it.
 */
export function standingOf(tool: ListedTool, accepted: readonly ListedTool[]): Standing {
  const before = accepted.find(({ name }) => name === tool.name);
  if (before === undefined) return 'new';
  return before.digest === tool.digest ? 'accepted' : 'changed';
}
