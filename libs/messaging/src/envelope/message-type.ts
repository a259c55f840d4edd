/** Name of the durable fanout exchange of a message type, which is also how MassTransit names it: `Namespace:Type`. */
export function exchangeName(namespace: string, messageName: string): string {
  return `${namespace}:${messageName}`;
}

/** MassTransit's URN of a message type: `urn:message:Namespace:Type`. */
export function messageTypeUrn(namespace: string, messageName: string): string {
  return `urn:message:${namespace}:${messageName}`;
}

/** MassTransit's URNs for "processing a message of this type failed", the specific one first. */
export function faultTypeUrns(namespace: string, messageName: string): string[] {
  return [`urn:message:MassTransit:Fault[[${namespace}:${messageName}]]`, 'urn:message:MassTransit:Fault'];
}

/** Whether a URN announces a fault, of whatever message. */
export function isFaultUrn(urn: string): boolean {
  return /^urn:message:MassTransit:(Receive)?Fault/i.test(urn);
}
