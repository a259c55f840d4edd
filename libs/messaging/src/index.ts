export { MessagingModule } from './nest/messaging.module';
export type { BusOptions, MessagingOptions } from './nest/messaging-options';
export { Answer, Consume } from './nest/consume.decorator';
export type { ConsumeContext, ConsumeOptions } from './nest/consume.decorator';
export { MessagePublisher } from './nest/message-publisher';
export { RequestClient } from './nest/request-client';
export { inboxMigrations } from './nest/inbox-migrations';
export type { PublishOptions } from './bus-runtime';
export type { RequestOutcome } from './requesting/bus-requester';
export { createEnvelope } from './envelope/create-envelope';
export type { EnvelopeOptions, SerializedEnvelope } from './envelope/create-envelope';
export type { ReceivedEnvelope } from './envelope/read-envelope';
export { messageTraceHeaders } from './envelope/trace-headers';
export { exchangeName, messageTypeUrn } from './envelope/message-type';
export { errorQueue, retryQueue, skippedQueue } from './bus/queue-topology';
export { connectBus } from './connect-bus';
export type { ConnectBusOptions, PlainBus, PlainConsumeOptions } from './connect-bus';
export { ParkingLot } from './parking/parking-lot';
export type { ParkingQueue } from './parking/parking-lot';
export type { ParkedMessage } from './parking/parked-message';
export type { DeliveryContext } from './consuming/endpoint';
export {
  BusUnavailableError,
  MessageReturnedError,
  PublishTimeoutError,
  RequestFaultedError,
  RequestTimeoutError,
} from './errors';
