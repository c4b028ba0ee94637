import { checkedTool } from '../tools/checks/checked-tool.ts';
import type { Tool } from '../tools/contract.ts';
import type { ToolboxDeps } from './deps.ts';
import { assertFileAllowed, type FileToolName } from './file-access.ts';
import { fileListTool } from './file-list.ts';
import { fileReadTool } from './file-read.ts';
import { fileDeleteTool } from './changes/file-delete.ts';
import { fileEditTool } from './changes/file-edit.ts';
import { fileWriteTool } from './changes/file-write.ts';
import { textSearchTool } from './text-search.ts';
import { timeNowTool } from './time-now.ts';
import { webFetchTool } from './web/web-fetch.ts';

/** The built-in tools for files, time and the web. The policy of an agent decides which of them it sees. */
export function createToolbox(deps: ToolboxDeps): Tool[] {
  return [...Object.values(createFileTools(deps)), timeNowTool(deps.clock), webFetchTool(deps)];
}

/** The tools for files by name. */
export function createFileTools(deps: ToolboxDeps): Record<FileToolName, Tool> {
  const tools = {
    file_read: fileReadTool(deps),
    file_list: fileListTool(deps),
    file_write: fileWriteTool(deps),
    file_edit: fileEditTool(deps),
    file_delete: fileDeleteTool(deps),
    text_search: textSearchTool(deps),
  };
  const { remote } = deps;
  if (remote === undefined) return tools;
  const remoteTool = (name: FileToolName): Tool =>
    checkedTool({
      descriptor: tools[name].descriptor,
      check: (input, caller) => assertFileAllowed(deps, caller, name, input),
      call: (input, context) => remote.callTool(name, input, context.op),
    });
  return {
    file_read: remoteTool('file_read'),
    file_list: remoteTool('file_list'),
    file_write: remoteTool('file_write'),
    file_edit: remoteTool('file_edit'),
    file_delete: remoteTool('file_delete'),
    text_search: remoteTool('text_search'),
  };
}
