/** An event that waits for an operator, because the broker refused it too often. */
export interface ParkedEvent {
  readonly messageId: string;
  readonly facilityId: number;
  readonly bus: string;
  readonly exchange: string;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly createdAt: Date;
  readonly parkedAt: Date;
  readonly body: string;
}
