/**
 * Where the text of a session item came from. The first six are sources of messages. `Engine`: a note of the loop, or what a hook
 * asks for. `Skill`: the text of an imported skill. `Tool`: a tool whose results have no closer origin. `Unknown`: an item of a release that did not store origins.
 */
export const ITEM_ORIGINS = [
  'User',
  'Agent',
  'Reply',
  'Schedule',
  'Trigger',
  'Peer',
  'Engine',
  'Tool',
  'File',
  'Memory',
  'Database',
  'Web',
  'Mcp',
  'Skill',
  'Unknown',
] as const;
export type ItemOrigin = (typeof ITEM_ORIGINS)[number];
