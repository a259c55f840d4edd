import { createHash } from 'node:crypto';

/** Identity of the message that a message called `messageId` is passed on as. The same every time, so that a delivery that comes
 *  again is passed on as the same message, and its receiver's inbox recognises it. A UUID of version 8 (RFC 9562), from SHA-256. */
export function republishedId(messageId: string): string {
  const bytes = createHash('sha256').update(`IScheduleCreatedEvent:${messageId}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
