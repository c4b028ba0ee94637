import { TOOL_CATEGORIES, type ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

export interface RateTarget {
  /** A message or a session. */
  target: string;
  rating: string;
  category?: string | undefined;
}

export interface ParsedRating {
  message?: string;
  session?: string;
  rating: number;
  category?: ToolCategoryName;
}

/** The ids of messages, which no session id of Temper starts with. */
const MESSAGE_ID = /^msg[-_][A-Za-z0-9_-]+$/;

/** Throws TEMPER_USAGE for a rating that is no integer from 0 to 10, and for an unknown category. */
export function rateTarget({ target, rating, category }: RateTarget): ParsedRating {
  const value = /^\d{1,2}$/.test(rating) ? Number(rating) : Number.NaN;
  if (!(value >= 0 && value <= 10)) {
    const shown = printable(rating, 40);
    throw new TemperError('TEMPER_USAGE', `the rating "${shown}" is not an integer from 0, useless, to 10, perfect`);
  }
  const known = TOOL_CATEGORIES.find((name) => name === category);
  if (category !== undefined && known === undefined) {
    const shown = printable(category, 40);
    throw new TemperError('TEMPER_USAGE', `"${shown}" is not a tool category; use ${TOOL_CATEGORIES.join(', ')}`);
  }
  return {
    ...(MESSAGE_ID.test(target) ? { message: target } : { session: target }),
    rating: value,
    ...(known === undefined ? {} : { category: known }),
  };
}
