import { createCustomers, customersConfig } from './customers/customers.neighbour';
import { runNeighbour } from './neighbour/run-neighbour';

void runNeighbour(customersConfig, process.env, createCustomers);
