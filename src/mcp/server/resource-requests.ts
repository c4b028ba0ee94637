import { ProtocolError, ProtocolErrorCode, type Server } from '@modelcontextprotocol/server';
import { printable } from '../../lib/printable.ts';
import type { ServedResources } from './served.ts';

const PAGE = 100;
/** Resources, whose list has a page for each hundred. */
const CURSOR = /^[1-9]\d{0,5}$/;

/** Answers the requests about resources. */
export function serveResources(server: Server, resources: ServedResources): void {
  server.setRequestHandler('resources/list', async ({ params }) => {
    const from = offsetOf(params?.cursor);
    const all = await resources.list();
    const next = from + PAGE;
    return {
      resources: all.slice(from, next).map((resource) => ({ ...resource })),
      ...(next < all.length ? { nextCursor: String(next) } : {}),
    };
  });
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [{ ...resources.template }] }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const found = await resources.read(uri);
    if (found === undefined)
      throw invalid(`no resource is named ${printable(uri, 200)}; list them with resources/list`);
    return { contents: [{ uri, ...found }] };
  });
}

function offsetOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (!CURSOR.test(cursor)) throw invalid('the cursor is not one that resources/list returned');
  return Number(cursor);
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
