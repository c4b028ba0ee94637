import { join } from 'node:path';
import { Client, type ClientOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { plainEnvironment, ROOT } from './command.ts';
import type { Project } from './project.ts';

export interface McpClientOptions extends ClientOptions {
  /** Further arguments of `temper mcp serve`. */
  args?: readonly string[];
}

export const SERVE = ['mcp', 'serve', '-f', 'agent.yaml', '--model-script', 'script.yaml'];

/** Runs `work` as a program with the SDK's own client, connected to `temper mcp serve` as a process. */
export async function asMcpClient(
  { path }: Project,
  { args = [], ...options }: McpClientOptions,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  const transport = new StdioClientTransport({
    command: join(ROOT, 'bin/temper'),
    args: [...SERVE, ...args],
    cwd: path,
    env: plainEnvironment(),
  });
  const client = new Client({ name: 'test', version: '1' }, options);
  try {
    await client.connect(transport);
    await work(client);
  } finally {
    await client.close();
  }
}
