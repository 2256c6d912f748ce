torchcompileShard("575ae2f5ab88f65a",{"means/inference": "H4sIAAAAAAACA6tWSinKTCtRsjLQMzA3NjU2M9dRSkosSc5ILVayqq6tBQCPqc96IAAAAA=="});
