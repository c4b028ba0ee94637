/** A number of 0 or more as the decimal text of a manifest, with at most six decimals. */
export function decimalText(value: number): string {
  const text = value.toFixed(6);
  return text.replace(/0+$/, '').replace(/\.$/, '');
}

/** The largest amount that a manifest can hold. */
export const MAX_AMOUNT = 999_999_999;
