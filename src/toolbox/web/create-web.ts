import type { SafeBytesFetch } from '../../net/fetch.ts';
import type { Web } from './deps.ts';
import { pageThreads, type PageReader } from './page/page-thread.ts';

/** The web over this fetch. Loads the program that reads pages with the first page. */
export function createWeb(fetch: SafeBytesFetch): Web {
  let reader: Promise<PageReader> | undefined;
  const load = async (): Promise<PageReader> => {
    const { startPageThread } = await import('./page/program.ts');
    return pageThreads({ startThread: startPageThread });
  };
  return {
    fetch,
    async readPage(body, op) {
      reader ??= load();
      return (await reader)(body, op);
    },
  };
}
