import type { Tool } from '../tools/contract.ts';
import type { ToolboxDeps } from './deps.ts';
import { fileListTool } from './file-list.ts';
import { fileReadTool } from './file-read.ts';
import { fileWriteTool } from './file-write.ts';
import { textSearchTool } from './text-search.ts';
import { timeNowTool } from './time-now.ts';

/** The built-in tools for files and time. Which of them an agent sees is its policy's decision. */
export function createToolbox(deps: ToolboxDeps): Tool[] {
  return [fileReadTool(deps), fileListTool(deps), fileWriteTool(deps), textSearchTool(deps), timeNowTool(deps.clock)];
}
