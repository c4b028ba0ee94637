import { type RequestListener, request as sendRequest } from 'node:http';
import { fetchingServer } from '../../../support/mcp/published-servers.ts';

/** The handler of a host that offers a published MCP server, which ends with this program. `python`: the folder with its package. */
export async function mcpHost(python: string): Promise<RequestListener> {
  const { port } = await fetchingServer(python);
  return (request, response) => {
    const { method, url, headers } = request;
    const to = { host: '127.0.0.1', port, method, path: url, headers: { ...headers, host: `127.0.0.1:${port}` } };
    const sent = sendRequest(to, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    response.on('close', () => sent.destroy());
    request.pipe(sent);
  };
}
