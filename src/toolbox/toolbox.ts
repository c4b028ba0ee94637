import type { Tool } from '../tools/contract.ts';
import type { ToolboxDeps } from './deps.ts';
import { assertFileAllowed, type FileToolName } from './file-access.ts';
import { fileListTool } from './file-list.ts';
import { fileReadTool } from './file-read.ts';
import { fileWriteTool } from './file-write.ts';
import { textSearchTool } from './text-search.ts';
import { timeNowTool } from './time-now.ts';

/** The built-in tools for files and time. The policy of an agent decides which of them it sees. */
export function createToolbox(deps: ToolboxDeps): Tool[] {
  return [...Object.values(createFileTools(deps)), timeNowTool(deps.clock)];
}

/** The tools for files by name. */
export function createFileTools(deps: ToolboxDeps): Record<FileToolName, Tool> {
  const tools = {
    file_read: fileReadTool(deps),
    file_list: fileListTool(deps),
    file_write: fileWriteTool(deps),
    text_search: textSearchTool(deps),
  };
  const { remote } = deps;
  if (remote === undefined) return tools;
  const remoteTool = (name: FileToolName): Tool => ({
    descriptor: tools[name].descriptor,
    async call(input, context) {
      assertFileAllowed(deps, context, name, input);
      return remote.callTool(name, input, context.op);
    },
  });
  return {
    file_read: remoteTool('file_read'),
    file_list: remoteTool('file_list'),
    file_write: remoteTool('file_write'),
    text_search: remoteTool('text_search'),
  };
}
