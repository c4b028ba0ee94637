import { parentPort, workerData } from 'node:worker_threads';
import { isTemperError } from '../../../lib/errors.ts';
import { extractPage, type ResponseBody } from './extract-page.ts';
import type { ThreadAnswer } from './page-thread.ts';

/** The program of the thread of one page: extracts its text and ends. */
parentPort?.postMessage(answer(workerData as ResponseBody));

function answer(body: ResponseBody): ThreadAnswer {
  try {
    return { page: extractPage(body) };
  } catch (error) {
    if (!isTemperError(error)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}
