import { hideTokens } from '@platform/service-defaults';

/** Control and format characters, line separators and halves of characters: they could forge lines or hide text from whoever reads the trail. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** The longest user name kept. People type passwords into the wrong field; what is this long is no name. */
export const AUDITED_NAME_LENGTH = 64;
const DETAIL_LENGTH = 200;

/** What callers say, fit for the audit trail: bounded, without unprintable characters (shown as U+FFFD) and without tokens.
 *  Null for anything but a text.
 *  @param maxLength in code points */
export function auditedText(value: unknown, maxLength: number): string | null {
  if (typeof value !== 'string') return null;
  // Cut first: cleaning costs by length, and a caller chooses that.
  const cut = Array.from(value.slice(0, maxLength * 2))
    .slice(0, maxLength)
    .join('');
  return hideTokens(cut.replace(UNPRINTABLE, '\ufffd'));
}

export function auditedDetail(value: string | undefined): string | null {
  return auditedText(value, DETAIL_LENGTH);
}
