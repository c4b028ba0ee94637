import type { CallerContext, ToolDescriptor, ToolResult } from '../contract.ts';

/** Scans the results that leave the tools. */
export interface ResultScan {
  /** Whether results of this tool are content of hosts, errors included. */
  isFromHost(tool: ToolDescriptor): boolean;
  /** `isFromHost`: the result is content of a host, or of a tool that got content of a host from another one. */
  scan(tool: ToolDescriptor, result: ToolResult, call: { caller: CallerContext; isFromHost: boolean }): ToolResult;
}
