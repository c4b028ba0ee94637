/** Names of the tools that are not made by agents, and that no forged tool may take. */
export const BUILT_IN_NAMES: ReadonlySet<string> = new Set([
  'file_list',
  'file_read',
  'file_write',
  'forge_tool',
  'memory_get',
  'memory_search',
  'memory_set',
  'text_search',
  'time_now',
]);
