import { createCustomers, customersConfig } from './customers/customers.neighbour';
import { runNeighbour } from './neighbour/neighbour';

void runNeighbour(customersConfig, process.env, createCustomers);
